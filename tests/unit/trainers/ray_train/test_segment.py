"""A Ray Train function from rung to rung: files, repeated reports, early ends, halts and errors; without Ray."""

from __future__ import annotations

import os
from typing import Any

import pytest
import ray.train
import torch
from ray.train.v2._internal.execution import train_fn_utils

from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.ray_train_job import train, trainer
from tests.support.refusals import refuses
from tests.support.trainers.ray_train.segment import WORDS, read, report, steps
from trainers import RayTrainTrainer
from trainers.gangs.messages import Assignment


def run(function: Any, *assignments: Assignment) -> list:
    return serve_alone(RayTrainTrainer(trainer(0, function)).program({}), *assignments)


def test_a_trial_goes_on_from_its_files_and_is_the_same_each_time(tmp_path):
    plan = [
        assignment(tmp_path / name, start, stop, **WORDS)
        for name in ("one", "other")
        for start, stop in ((0, 2), (2, 5))
    ]
    first, second, *again = run(train, *plan)
    assert steps(first) == [1, 2]
    assert steps(second) == [3, 4, 5]
    assert [report.metrics["epoch"] for report in second.reports] == [2, 3, 4]
    assert not second.details
    assert "note" not in first.reports[0].metrics
    assert [segment.reports for segment in again] == [first.reports, second.reports]
    model = RayTrainTrainer(trainer(0)).trained(second.checkpoint, manifest=second.manifest).model()
    with model.as_directory() as folder:
        assert torch.load(os.path.join(folder, "model.pt"), weights_only=True)["epoch"] == 4
        assert os.listdir(folder) == ["model.pt"]


@pytest.mark.parametrize(("every", "repeated"), [(0, 3), (2, 1)])
def test_what_has_no_files_is_done_again_and_not_counted_twice(tmp_path, every, repeated):
    words = {**WORDS, "every": every}
    first, second = run(train, assignment(tmp_path, stop=3, **words), assignment(tmp_path, start=3, stop=5, **words))
    assert (steps(first), steps(second)) == ([1, 2, 3], [4, 5])
    assert [report.metrics["epoch"] for report in second.reports] == [3, 4]
    assert second.details == {"units_trained_again": repeated}
    if not every:  # From the beginning it is the training of before, to the bit.
        [whole] = run(train, assignment(tmp_path, stop=5, name="whole", **words))
        assert whole.reports == first.reports + second.reports


def test_files_of_before_are_kept_where_a_rung_brings_none(tmp_path):
    def function(config):
        checkpoint = ray.train.get_checkpoint()
        for _ in range(4 - int(read(checkpoint)["at"]) if checkpoint else 4):
            report({"x": 1.0}, **({} if checkpoint else {"at": "2"}))

    plan = [(0, 2), (2, 3), (3, 4)]
    first, second, third = run(function, *(assignment(tmp_path, start, stop) for start, stop in plan))
    assert (steps(first), steps(second), steps(third)) == ([1, 2], [3], [4])
    assert (second.details, third.details) == ({}, {"units_trained_again": 1})


def test_a_function_that_returns_early_has_trained_its_trial_to_the_end(tmp_path):
    words = {**WORDS, "num_epochs": 2}
    first, second = run(train, assignment(tmp_path, stop=4, **words), assignment(tmp_path, start=4, stop=6, **words))
    assert [report.metrics["epoch"] for report in first.reports] == [0, 1, 1, 1]
    assert [report.metrics["epoch"] for report in second.reports] == [1, 1]


def test_a_halted_trial_ends_at_a_report_with_files(tmp_path):
    words = {**WORDS, "every": 2, "halt_at": 1}
    [segment] = run(train, assignment(tmp_path, stop=6, **words))
    assert steps(segment) == [1, 2]
    assert segment.checkpoint.endswith("000002.pt")


def test_nothing_holds_the_end_of_a_rung_up(tmp_path):
    def function(config):
        while True:
            try:
                report({"x": 1.0}, a="1")
            except Exception:
                pytest.fail("it is no error")

    [segment] = run(function, assignment(tmp_path, stop=2))
    assert steps(segment) == [1, 2]


def test_the_files_of_a_report_are_there_at_once(tmp_path):
    def function(config):
        report({"x": 1.0}, a="1")
        report({"x": float(read(ray.train.get_checkpoint())["a"])}, a="2")
        report({"x": float(read(ray.train.get_checkpoint())["a"])})

    [segment] = run(function, assignment(tmp_path, stop=3))
    assert [each.metrics["x"] for each in segment.reports] == [1.0, 1.0, 2.0]


def test_ray_train_is_nobody_s_again_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(train_fn_utils, "_train_fn_utils", None)  # Ray's own local mode leaves its answers there.
    run(train, assignment(tmp_path, **WORDS))
    with refuses(RuntimeError, field="Ray Train"):
        ray.train.get_context()
