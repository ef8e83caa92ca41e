"""Text as rows of bytes: the source of Python's standard library, which every machine has."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.datasets.dataset import Dataset, DatasetInfo, Rows
from trainers.errors import DataError

CONTEXT = 128
"""Bytes of a row; its label is the byte behind them."""

INFO = DatasetInfo(
    name="python-stdlib",
    title="Python's standard library",
    description=f"The source of this machine's Python: rows of {CONTEXT} bytes, and the byte behind each.",
    source="Python Software Foundation, the standard library of the Python that runs; rows as of 3.11",
    licence="PSF-2.0",
    rows=94_652,
)

_APART = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})
_END = b"\0"
"""Behind each file; no source has such a byte."""
_PARTS = 20
"""One file in so many is there to validate, another to test."""


def load(info: DatasetInfo, folder: Path | None, seed: int, repeat: int) -> Dataset:
    """Loads it: float32 features, a column a byte, from 0 to 255; float32 labels, each the byte behind its row.

    A file is in one part, by a digest of its name and the seed, in every version of Python: nine tenths are there to
    train on. Files come in the order of their names, and a part's rows in an order drawn from the seed, so that the
    first few of them are a fair sample.

    Args:
        info: its facts.
        folder: that holds the source; None: that of the Python that runs.
        seed: of what is said above.
        repeat: how often each train and validation row appears.

    Raises:
        DataError: there is no source, or too little for rows of every part.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    texts = {"train": bytearray(), "validation": bytearray(), "test": bytearray()}
    for name, text in _sources(folder):
        texts[_part(name, seed)].extend(text + _END)
    parts = {name: _rows(text, seed) for name, text in texts.items()}
    for name, (features, _) in parts.items():
        if not len(features):
            raise DataError(
                f"dataset {info.name!r} has no rows for the part {name!r}: {folder} holds {len(texts[name]):,} bytes "
                "of source for it; use a Python that was installed with the source of its standard library"
            )
    return Dataset(
        name=info.name,
        title=info.title,
        synthetic=info.synthetic,
        train=_repeated(parts["train"], repeat),
        validation=_repeated(parts["validation"], repeat),
        test=_repeated(parts["test"], 1),
    )


def _sources(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file's name below the folder, and its text; tests and what users installed stay out."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.py"))
    for name in names:
        if _APART.isdisjoint(name.split("/")):
            yield name, (folder / name).read_bytes()


def _part(name: str, seed: int) -> str:
    drawn = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big") % _PARTS
    return {0: "validation", 1: "test"}.get(drawn, "train")


def _rows(text: bytearray, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Rows that follow each other without overlap, and the byte behind each; what does not fill a row is left out."""
    tokens = np.frombuffer(bytes(text), np.uint8)
    count = max(0, len(tokens) - 1) // CONTEXT
    order = np.random.default_rng(seed).permutation(count)
    features, labels = tokens[: count * CONTEXT].reshape(count, CONTEXT), tokens[CONTEXT::CONTEXT][:count]
    return features[order], labels[order]


def _repeated(part: tuple[NDArray[np.uint8], NDArray[np.uint8]], times: int) -> Rows:
    features, labels = (np.concatenate([array] * times) if times > 1 else array for array in part)
    return features.astype(np.float32), labels.astype(np.float32)
