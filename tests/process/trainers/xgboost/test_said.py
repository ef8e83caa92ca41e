"""Weights, margins and bounds of labels: on several workers as on one, and as XGBoost has them by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig

from tests.support.assignments import assignment
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.xgboost.said import BINARY, CASES, FRAME, Case, matrix, order, program
from trainers import Channel, XGBoostTrainer, storage
from trainers.gangs.messages import Segment


@pytest.mark.parametrize("case", CASES)
def test_three_workers_learn_what_one_does(gang: ProcessGang, tmp_path: Path, case: Case) -> None:
    """But for weights of queries."""
    if {"qid", "weight"} <= case[1].keys():
        for answer in gang.run(program(case), order(tmp_path / "three", case)):
            mentions(str(answer), "'train'", "queries", 3, "weight", "num_workers=1")
        return
    answers = gang.run(program(case), order(tmp_path / "three", case))
    segments = [answer for [answer] in answers]
    assert all(isinstance(segment, Segment) for segment in segments), segments
    assert [segment.reports for segment in segments] == [segments[0].reports] * 3
    [alone] = serve_alone(program(case)(), order(tmp_path / "one", case))
    for mine, one in zip(segments[0].reports, alone.reports, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-4)
    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(storage.read(segments[0].checkpoint)))
    booster.set_param([*((k, v) for k, v in case[2].items() if k != "eval_metric")])
    booster.set_param([("eval_metric", metric) for metric in case[2]["eval_metric"]])
    line = booster.eval_set([(matrix(case, slice(96, 496)), "v")], 3)
    own = {part.split(":")[0][2:]: float(part.split(":")[1]) for part in line.split("\t")[1:]}
    found = {name.partition(":")[2]: value for name, value in segments[0].reports[-1].metrics.items()}
    assert found == pytest.approx(own, rel=1e-5)


def test_a_model_of_one_worker_is_measured_by_three_as_by_one(gang: ProcessGang, tmp_path: Path) -> None:
    """Whose bins are others, as those of a gang of another size are."""
    x = np.random.default_rng(7).normal(size=(3000, 2)).astype(np.float32)
    rows = (x, (x[:, 0] > x[:, 1]).astype(np.float32), {"weight": np.abs(x[:, 1])})
    told = {"objective": "binary:logistic", "eval_metric": ["auc", "aucpr", "logloss"]}

    def make() -> Any:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=told)
        return trainer.program({name: Channel.of(rows, name=name).place(0) for name in ("train", "validation")})

    three, one = (str(tmp_path / workers / "4.ubj") for workers in ("three", "one"))
    [trained] = serve_alone(make(), assignment(hyperparameters=told, stop=4, save_to=one))
    assert isinstance(trained, Segment), trained
    none = {"hyperparameters": {**told, "eta": 0.0}, "checkpoint": one, "start": 4, "stop": 5}
    [alone] = serve_alone(make(), assignment(**none, save_to=str(tmp_path / "5.ubj")))
    for [answer] in gang.run(make, assignment(**none, save_to=three)):
        assert answer.reports[-1].metrics == pytest.approx(alone.reports[-1].metrics, rel=1e-12)


def test_weights_that_are_all_0_are_every_worker_s_error(gang: ProcessGang, tmp_path: Path) -> None:
    """Metrics would be 0 and the best of all; one worker's may be."""

    def make(weights: Any) -> Callable[[], Any]:
        opened = {
            name: Channel.of((FRAME[[*"abcd"]], FRAME["y"], {"weight": of}), name=name)
            for name, of in {"train": FRAME["w"], "validation": weights}.items()
        }
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=BINARY)
        return lambda: trainer.program({name: channel.place(0) for name, channel in opened.items()})

    for answer in gang.run(make(np.zeros(600)), order(tmp_path / "none", CASES[0])):
        mentions(str(answer), "'validation'", "weight", 0)
    of_one = np.arange(600) % 3 == 1
    answers = gang.run(make(of_one), order(tmp_path / "one", CASES[0]))
    assert all(isinstance(answer, Segment) for [answer] in answers), answers
