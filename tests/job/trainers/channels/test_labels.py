"""Labels are held against what the objective and the metrics take, where they are read."""

from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest

from tests.support.refusals import refuses
from trainers.channels import Channel, LabelRule
from trainers.errors import DataError

RULES = (
    LabelRule(who="the objective", takes="labels from 0 to 1", remedy="encode them", least=0, most=1),
    LabelRule(who="the metric", takes="rows of both classes", remedy="add some", classes=2),
)


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([0, 2, 3], ("2 labels", RULES[0].who, RULES[0].takes, RULES[0].remedy)),
        ([0, 1, -0.5], ("label", "-0.5", RULES[0].who, RULES[0].takes, RULES[0].remedy)),
        ([1, 1, 1], ("label", "1", RULES[1].who, RULES[1].takes, RULES[1].remedy)),
    ],
)
def test_labels_are_checked_where_they_are_read(
    tmp_path: Path, kind: str, labels: list[float], names: tuple[str, ...]
) -> None:
    data = pd.DataFrame({"y": labels, "x": [1.0, 2.0, 3.0]})
    data.to_csv(tmp_path / "data.csv", index=False)
    data.to_parquet(tmp_path / "data.parquet")
    source = data if kind == "pandas" else tmp_path / f"data.{kind}"
    channel = Channel.of(source, name="train").expecting(RULES)
    for read in (channel.look, channel.read_whole):
        with refuses(DataError, field=("'train'", *names)):
            read()
    if kind != "pandas":
        with refuses(DataError, field=("'train'", *names)):
            pickle.loads(pickle.dumps(channel.place(2))).read_whole()
