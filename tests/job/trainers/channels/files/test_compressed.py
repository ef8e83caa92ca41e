"""Compressed CSV files: what plain ones hold, with the same errors, and a clear one where they are cut short."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.refusals import refuses
from trainers import Channel, DataError

Pack = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


PACKS: dict[str, Pack] = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}


@pytest.mark.parametrize("ending", PACKS)
def test_one_that_is_cut_short_is_an_error(tmp_path: Path, ending: str) -> None:
    random = np.random.default_rng(0).normal(size=(40_000, 3))
    whole = PACKS[ending](b"\n".join(b",".join(b"%.9f" % cell for cell in row) for row in random))
    (tmp_path / "cut.csv").with_suffix(f".csv{ending}").write_bytes(whole[: len(whole) // 2])
    for read in (lambda of: of.read(0, 1), lambda of: of.read(0, 2), lambda of: of.look()):
        with refuses(DataError, field=f"cut.csv{ending}", value="damaged"):
            read(Channel.of(f"{tmp_path}/cut.csv{ending}"))
