"""Counts of labels: the same for every source of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from tests.support.refusals import refuses
from trainers import Channel, DataError
from trainers.channels import LabelCounts, count_labels, label_counts

FRAME = pd.DataFrame({"a": np.arange(50.0), "y": np.arange(50) % 3 % 2, "b": 1.0})
COUNTS = LabelCounts(rows=50, zeros=int((FRAME.y == 0).sum()), ones=int((FRAME.y == 1).sum()))


def source(kind: str, folder: Path) -> Any:
    match kind:
        case "frame":
            return FRAME
        case "arrays":
            return FRAME[["a", "b"]].to_numpy(), FRAME["y"].to_numpy()
        case "csv":
            for part in (0, 1):
                FRAME[part * 20 : 20 + part * 30].to_csv(folder / f"{part}.csv", index=False)
        case "parquet":
            FRAME.to_parquet(folder / "0.parquet", row_group_size=7)
        case "libsvm":
            dump_svmlight_file(FRAME[["a", "b"]], FRAME["y"], str(folder / "0.libsvm"))
    return str(folder)


@pytest.mark.parametrize("kind", ["frame", "arrays", "csv", "parquet", "libsvm"])
def test_every_source_has_the_same(kind: str, tmp_path: Path) -> None:
    target = {"target": "y"} if kind in ("frame", "csv", "parquet") else {}
    assert count_labels(Channel.of(source(kind, tmp_path), **target)) == COUNTS


def test_labels_may_be_names_of_directories(tmp_path: Path) -> None:
    for label, rows in FRAME.groupby("y"):
        (tmp_path / f"y={label}").mkdir()
        rows[["a", "b"]].to_parquet(tmp_path / f"y={label}" / "0.parquet")
    assert count_labels(Channel.of(str(tmp_path), target="y")) == COUNTS


def test_other_labels_are_rows_all_the_same() -> None:
    assert LabelCounts.of([0, 1, 2, np.nan, -1]) == LabelCounts(rows=5, zeros=1, ones=1)
    assert LabelCounts.of([]) == LabelCounts(rows=0, zeros=0, ones=0)


def test_much_text_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_counts, "MOST_BYTES", 10)
    assert count_labels(Channel.of(source("csv", tmp_path), target="y")) is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_is_gone_is_said(kind: str, tmp_path: Path) -> None:
    channel = Channel.of(source(kind, tmp_path), target="y", name="validation")
    (tmp_path / f"0.{kind}").unlink()
    with refuses(DataError, field="validation", value=f"0.{kind}"):
        count_labels(channel)
