"""Tables on disk, written a part at a time: no process holds one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from trainers.datasets import load

GROUP_BYTES = 32 << 20
"""Of the features of a row group."""
VALIDATION = 200_000
"""Rows that are scored, of generated tables."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A table in Parquet files.

    Args:
        train: the files' folder.
        validation: a file.
        rows: to train on.
        columns: features.
    """

    train: str
    validation: str
    rows: int
    columns: int

    @property
    def bytes(self) -> int:
        """Of the features to train on, as float32."""
        return 4 * self.rows * self.columns


def generated(folder: Path, rows: int, columns: int) -> Rows:
    """Random numbers, and labels that four of them tell, with noise; the same numbers whenever it is called."""
    train = folder / "train"
    train.mkdir(parents=True)
    part = min(rows, max(1, 8 * GROUP_BYTES // (4 * columns)))
    for number, start in enumerate(range(0, rows, part)):
        _write(train / f"part-{number:04}.parquet", number, min(part, rows - start), columns)
    _write(folder / "validation.parquet", 1_000_000, min(VALIDATION, rows), columns)
    return Rows(train=str(train), validation=str(folder / "validation.parquet"), rows=rows, columns=columns)


def features_of(
    random: np.random.Generator, rows: int, columns: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Some rows of a generated table, and their labels."""
    features = random.standard_normal((rows, columns), np.float32)
    signal = features[:, 0] + features[:, 1] * features[:, 2] + np.abs(features[:, 3])
    labels = (signal + random.standard_normal(rows, np.float32) > 0.8).astype(np.float32)
    return features, labels


def _write(path: Path, seed: int, rows: int, columns: int) -> None:
    random, group = np.random.default_rng(seed), max(1, GROUP_BYTES // (4 * columns))
    schema = pa.schema([("y", pa.float32()), *((f"x{column}", pa.float32()) for column in range(columns))])
    with parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for start in range(0, rows, group):
            features, labels = features_of(random, min(group, rows - start), columns)
            arrays = [pa.array(labels), *(pa.array(features[:, column]) for column in range(columns))]
            writer.write_table(pa.table(arrays, schema=schema), row_group_size=group)


def bank(folder: Path, data_dir: str | None, repeat: int) -> Rows:
    """The UCI bank marketing data, each row so often."""
    dataset = load("bank-marketing", data_dir=data_dir, repeat=repeat)
    folder.mkdir(parents=True, exist_ok=True)
    rows, columns = pandas.DataFrame(dataset.train).shape
    for name, part in (("train", dataset.train), ("validation", dataset.validation)):
        table: Any = pa.Table.from_pandas(part, preserve_index=False)
        parquet.write_table(table, folder / f"{name}.parquet", row_group_size=GROUP_BYTES // (4 * columns))
    return Rows(
        train=str(folder / "train.parquet"),
        validation=str(folder / "validation.parquet"),
        rows=rows,
        columns=columns - 1,
    )
