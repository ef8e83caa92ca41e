"""Made-up files of the MNIST data set."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

from trainers.datasets import DATASETS

FILES = tuple(DATASETS["mnist"].files)
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = FILES


def idx(shape: tuple[int, ...], raw: bytes | None = None) -> bytes:
    """A gzipped IDX file, of zeros unless said otherwise."""
    header = bytes((0, 0, 8, len(shape))) + struct.pack(f">{len(shape)}I", *shape)
    return gzip.compress(header + (raw if raw is not None else bytes(int(np.prod(shape)))), 1, mtime=0)


WHOLE = {
    TRAIN_IMAGES: idx((60_000, 28, 28)),
    TRAIN_LABELS: idx((60_000,), bytes(range(10)) * 6_000),
    TEST_IMAGES: idx((10_000, 28, 28), b"\xff" * 7_840_000),
    TEST_LABELS: idx((10_000,)),
}


def lay_out(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    return folder


CONTENTS = {name: f"what was published as {name}\n".encode() * 100 for name in FILES}
