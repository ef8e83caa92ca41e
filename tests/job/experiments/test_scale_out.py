"""The table of scaling out: what each setting trains, what is said of its scores, and short runs in this process."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from experiments.scale_out import measure, share, working
from experiments.scaling import shard_models
from experiments.scaling.measured import Row, Training, result, verdict
from experiments.scaling.page import page
from experiments.shared.published import Options, Steps
from hpo.uncertainty import auc_standard_error, proportion_standard_error
from tests.support.experiments.scale_out import APART, MARKETING, ROWS, made
from tests.support.refusals import mentions
from trainers import Trainer
from trainers.datasets import load

DIGITS = load("digits")
DATA = {"image": DIGITS, "xgboost": MARKETING}


def here(trainer: Trainer, **changed: Any) -> Trainer:
    """The same trainer in this process, where a parameter server's workers are simulated."""
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    given = {**trainer.hyperparameters, **changed}
    return type(trainer)(scaling=scaling, hyperparameters=given, **trainer.arguments)


def test_what_diverged_is_said_and_counted() -> None:
    measured = made()
    lost = replace(measured["image-4-async"], trainings=[Training(diverged=True)])
    measured["image-4-async"] = lost
    mentions(verdict(measured, MARKETING), "diverged", "one worker", "0.970")
    assert lost.last("test") is None
    assert math.isnan(lost.mean("training_seconds"))
    assert result(measured, MARKETING, APART)["rows"][1]["diverged"] == 1
    assert "diverged" in page(measured, DATA, APART).html()


def test_the_page_shows_the_table_and_pictures_of_both_models(tmp_path: Path) -> None:
    whole = page(made(), DATA, APART)
    titles = [section.title for section in whole.sections]
    for title, noun in zip(titles, ("table", "image", "XGBoost", "blog"), strict=True):
        mentions(title, noun)
    assert len(whole.write_pictures(tmp_path)) == 12
    assert "0.63" in whole.html()


def test_a_setting_is_trained_once_with_each_seed(tmp_path: Path) -> None:
    row = ROWS["image-4-async"]
    short = Row(**{**vars(row), "trainer": here(row.trainer, epochs=2)})
    options = Options(quick=True, seed=3, seeds=2, out=tmp_path)
    said: list[str] = []
    with Steps(tmp_path, said.append) as steps:
        first = measure(short, DIGITS, options, steps)
        assert said == []
        assert measure(short, DIGITS, options, steps) == first
    assert said == [f"image-4-async-{seed}: done before" for seed in (3, 4)]
    assert len(first.trainings) == 2
    assert first.trainings[0].curves != first.trainings[1].curves
    last = first.last("test")
    assert last is not None
    assert last.row_error == pytest.approx(proportion_standard_error(last.mean, 300))
    assert first.mean("worker_seconds") >= first.mean("training_seconds") > 0


def test_the_work_of_a_worker_is_its_share_of_the_rows(tmp_path: Path) -> None:
    parts = share(MARKETING, 3)
    assert len(parts.train) == math.ceil(len(MARKETING.train) / 3)
    assert [len(array) for array in share(DIGITS, 4).train] == [math.ceil(len(DIGITS.train[1]) / 4)] * 2
    row = ROWS["xgboost-1"]
    short = Row(**{**vars(row), "trainer": here(row.trainer, num_round=3)})
    options = Options(out=tmp_path)
    said: list[str] = []
    with Steps(tmp_path, said.append) as steps:
        seconds = [working(short, MARKETING, workers, options, steps) for workers in (1, 3)]
        assert min(seconds) > 0
        assert said == []
        assert working(short, MARKETING, 3, options, steps) == seconds[1]
    assert said == ["xgboost-work-of-3: done before"]


def test_rows_that_appear_again_make_no_score_surer(tmp_path: Path) -> None:
    few = replace(MARKETING, **{name: getattr(MARKETING, name).iloc[:900] for name in ("train", "validation", "test")})
    row = ROWS["xgboost-1"]
    short = Row(**{**vars(row), "trainer": here(row.trainer, num_round=3)})
    with Steps(tmp_path, print) as steps:
        once = measure(short, few, Options(out=tmp_path), steps).errors
        again = measure(short, few, Options(out=tmp_path, repeat=4), steps).errors
    assert again["validation"] == pytest.approx(2 * (once["validation"] or 0))
    assert again["test"] == once["test"]


def test_models_of_single_shards_are_worse_and_the_mean_of_parts_is_no_auc(tmp_path: Path) -> None:
    found = shard_models.measure(MARKETING, 3, 100, 7, tmp_path)
    assert max(found.alone) < found.whole
    assert min(found.alone) < found.averaged
    assert found.mean_of_parts != found.whole
    assert abs(found.mean_of_parts - found.whole) < 2 * auc_standard_error(found.whole, 238, 1822)
