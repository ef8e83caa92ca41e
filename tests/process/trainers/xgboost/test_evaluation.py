"""Metrics of rows that workers share: XGBoost's own values, the same to the last bit for any number of workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from tests.support.trainers.xgboost.evaluation import FEATURES, LABELS, STATIC, made, order, rows
from trainers import Channel, XGBoostTrainer, storage
from trainers.channels import PlacedChannel
from trainers.gangs.messages import Segment
from trainers.xgboost.rounds.evaluation import Evaluation, Share, sum_over

_READ_WHOLE = PlacedChannel.read_whole


def allow_whole() -> None:
    PlacedChannel.read_whole = _READ_WHOLE  # type: ignore[method-assign]


def forbid_whole() -> None:
    def refuse(channel: PlacedChannel) -> Any:
        if channel.name == "train":  # Rank 0 finds the bins of few rows in all of them.
            return _READ_WHOLE(channel)
        raise AssertionError(f"a worker reads all of channel {channel.name!r}")

    PlacedChannel.read_whole = refuse  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("labels", "hyperparameters"),
    [
        ("binary", {}),
        ("mostly", {"tree_method": "approx"}),
        ("classes", {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss", "merror"]}),
        ("real", {"objective": "reg:squarederror", "eval_metric": ["mae", "rmse"]}),
        ("binary", {"eval_metric": ["aucpr", "logloss"]}),
        ("classes", {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["auc", "merror"]}),
    ],
)
def test_three_workers_report_what_one_makes_of_their_model(
    gang: ProcessGang, tmp_path: Path, labels: str, hyperparameters: dict[str, Any]
) -> None:
    """And none of them reads rows of another's, but for what XGBoost has to compute."""
    static = {**STATIC, **hyperparameters}
    of_all = {"aucpr", "auc"} & set(static["eval_metric"]) - ({"auc"} if labels in ("binary", "mostly") else set())
    answers = gang.run(
        made(labels, 3, **hyperparameters),
        order(tmp_path, **hyperparameters),
        before=allow_whole if of_all else forbid_whole,
    )
    segments = [answer for [answer] in answers]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(segments[0].checkpoint)))
    for channel, part in (("validation", slice(700)), ("other", slice(700, None))):
        target = LABELS[labels][part]
        matrix = xgboost.DMatrix(FEATURES[part], target)
        share = Share.of(matrix, target, 0, 1, sum_over(1))
        told = {name: value for name, value in static.items() if name != "eval_metric"}
        booster.set_param([*told.items(), *(("eval_metric", metric) for metric in of_all)])
        alone = Evaluation(static, {channel: share}, lambda: {channel: matrix}, sum_over(1))(booster, 2)  # noqa: B023
        reported = {name: value for name, value in segments[0].reports[-1].metrics.items() if channel in name}
        assert list(reported) == list(alone)
        for name, value in alone.items():
            left = name.rpartition(":")[2] in of_all
            assert reported[name] == (pytest.approx(value, rel=1e-12) if left else value)


def test_labels_of_one_class_are_found_by_workers_together(gang: ProcessGang, tmp_path: Path) -> None:
    """Each share may lack a class by chance; all of them may not."""

    def program() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=STATIC)
        train, one = rows("binary"), rows("binary")[:60]
        one[:, 0] = 1
        channels = {"train": Channel.of(train, name="train"), "validation": Channel.of(one, name="validation")}
        rules = trainer.label_rules("validation", "validation:auc")
        channels["validation"] = channels["validation"].expecting(rules)
        return trainer.program({name: channel.place(0) for name, channel in channels.items()})

    answers = gang.run(program, order(tmp_path))
    for error in answers:
        mentions(str(error), "'validation'", 1, "objective_metric_name", "validation:auc")
