"""A table whose rows are told apart, in every form that a channel takes without Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from trainers.channels import Channel, Table


def frame(rows: int, columns: int = 3) -> pd.DataFrame:
    """A frame whose first column is the target and whose second is the row's number."""
    values = np.random.default_rng(7).normal(size=(rows, columns)).astype(np.float32)
    values[:, 1] = np.arange(rows)
    return pd.DataFrame(values, columns=["y", *(f"x{i}" for i in range(1, columns))])


def rows_of(table: Table) -> np.ndarray:
    """Which rows a table of `frame` holds."""
    return np.asarray(table.features)[:, 0].astype(int)


def same(one: Table, other: Table) -> None:
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.labels, other.labels)
    for table in (one, other):
        assert table.features.dtype == table.labels.dtype == np.float32
        assert table.features.flags.c_contiguous
        assert table.labels.flags.c_contiguous


def write(data: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The same data in every form that needs no Ray."""
    data.to_csv(folder / "headed.csv", index=False)
    data.to_csv(folder / "bare.csv", index=False, header=False)
    data.to_csv(folder / "semicolons.csv", index=False, sep=";")
    # A small row group, so that shards cross several.
    data.to_parquet(folder / "data.parquet", row_group_size=7)
    return {
        "pandas": Channel.of(data, target="y"),
        "numpy": Channel.of(data.to_numpy(), target=0),
        "pair of arrays": Channel.of((data.to_numpy()[:, 1:], data.to_numpy()[:, 0])),
        "pair of frames": Channel.of((data.drop(columns="y"), data["y"])),
        "csv with header": Channel.of(folder / "headed.csv", target="y"),
        "csv without header": Channel.of(str(folder / "bare.csv")),
        "csv with semicolons": Channel.of(folder / "semicolons.csv", delimiter=";"),
        "parquet": Channel.of(folder / "data.parquet", target="y"),
        "uri": Channel.of(f"file://{folder}/data.parquet", target=-data.shape[1]),
    }
