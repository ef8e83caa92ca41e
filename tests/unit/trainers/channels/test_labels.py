"""Labels are held against what the objective and the metrics take, where they are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.refusals import refuses
from tests.support.tables import frame
from trainers.channels import Channel, LabelRule
from trainers.channels.files import files
from trainers.errors import DataError

RULES = (
    LabelRule(who="the objective", takes="labels from 0 to 1", remedy="encode them", least=0, most=1),
    LabelRule(who="the metric", takes="rows of both classes", remedy="add some", classes=2),
)


def test_a_shard_may_lack_a_class_by_chance() -> None:
    data = pd.DataFrame({"y": [0, 1, 0, 1], "x": range(4)})
    channel = Channel.of(data).expecting(RULES)
    assert channel.read(0, 2).labels.tolist() == [0, 0]
    channel.look()


def test_classes_are_counted_where_there_are_more_than_two() -> None:
    rule = LabelRule(who="the metric", takes="rows of all 3 classes", remedy="add some", classes=3, whole=True)
    with refuses(DataError, field=("labels", rule.who), value="2 classes", remedy=(rule.takes, rule.remedy)):
        Channel.of(np.array([[0, 1], [1, 1], [0, 2]])).expecting((rule,)).look()
    with refuses(DataError, field=("label", rule.who), value=0.5, remedy=(rule.takes, rule.remedy)):
        Channel.of(np.array([[0.5, 1], [1, 1]])).expecting((rule,)).look()


def test_text_labels_are_called_as_the_user_calls_them() -> None:
    rows = pd.DataFrame({"y": ["no"] * 3, "x": range(3)})
    with refuses(DataError, field=("every label", "the metric"), value="'no'", remedy="add some"):
        Channel.of(rows, target="y").expecting(RULES).look()
    three = pd.DataFrame({"y": ["no", "yes", "perhaps"], "x": range(3)})
    with refuses(DataError, field=("label", "the objective"), value="'yes'", remedy="encode them"):
        Channel.of(three, target="y").expecting(RULES).look()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_of_large_files_the_beginning_is_looked_at(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "QUICK_BYTES", 0)
    path = tmp_path / f"data.{kind}"
    data = frame(5)
    data.to_csv(path, index=False) if kind == "csv" else data.to_parquet(path)
    Channel.of(path).expecting(RULES).look()
    if kind == "csv":
        path.write_text("y,a\n1,nurse\n")
        with refuses(DataError, field=("data.csv", "'a'", "line 2"), value="nurse", remedy="categorical"):
            Channel.of(path).look()
