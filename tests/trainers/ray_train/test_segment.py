"""A Ray Train function from rung to rung: files, repeated reports, early ends, halts and errors; without Ray."""

from __future__ import annotations

import io
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray.train
import torch
import torch.distributed as dist
from ray.train.v2._internal.execution import train_fn_utils
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.record.store import Store
from hpo.report import JobData, job_page
from tests.support.networks import assignment
from tests.support.process_gang import process_gang, serve_alone
from tests.support.ray_train_job import train, trainer
from tests.support.refusals import refuses
from trainers import ConfigurationError, DivergedError, RayTrainTrainer, TrialError
from trainers.gangs.messages import Assignment, Segment

WORDS = {"lr": 0.01, "num_epochs": 6}


def run(function: Any, *assignments: Assignment) -> list:
    return serve_alone(RayTrainTrainer(trainer(0, function)).program({}), *assignments)


def steps(segment: Segment) -> list[int]:
    assert isinstance(segment, Segment), segment
    return [report.step for report in segment.reports]


def report(metrics: dict[str, Any], **files: str) -> None:
    """Reports with files of these names and texts; without any, no checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, "in").mkdir(exist_ok=True)
            Path(folder, "in", name).write_text(text)
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder) if files else None)


def read(checkpoint: Any) -> dict[str, str]:
    with checkpoint.as_directory() as folder:
        return {path.name: path.read_text() for path in Path(folder, "in").iterdir()}


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
    assert second.details == {"repeated_reports": repeated}
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
    assert (second.details, third.details) == ({}, {"repeated_reports": 1})


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


@pytest.mark.parametrize(
    ("function", "error", "names"),
    [
        (lambda config: None, TrialError, "ray.train.report(metrics)"),
        (lambda config: exit(3), TrialError, ("sys.exit(3)", "exception")),
        (lambda config: ray.train.report([1]), TrialError, ("ray.train.report", "metrics", "[1]", "dict")),
        (lambda config: ray.train.report({"loss": 10**400}), TrialError, ("ray.train.report", "loss", "float")),
        (lambda config: ray.train.get_dataset_shard("train"), ConfigurationError, "datasets={'train'"),
        (lambda config: 1 / config["lr"], ZeroDivisionError, "zero"),
        (lambda config: ray.train.report({"loss": float("nan")}), DivergedError, ("loss", "nan", "1")),
    ],
)
def test_what_is_wrong_is_the_trial_s_error(tmp_path, function, error, names):
    wrong = replace(assignment(tmp_path, lr=0), objective="loss")
    [found] = run(function, wrong)
    with refuses(error, field=names):
        raise found


def test_ray_train_is_nobody_s_again_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(train_fn_utils, "_train_fn_utils", None)  # Ray's own local mode leaves its answers there.
    run(train, assignment(tmp_path, **WORDS))
    with refuses(RuntimeError, field="Ray Train"):
        ray.train.get_context()


def sharded(config: dict[str, Any]) -> None:
    """Each rank has a file, and its part of the sum."""
    rank = ray.train.get_context().get_world_rank()
    if checkpoint := ray.train.get_checkpoint():
        assert read(checkpoint) == {f"{other}": "2" for other in range(2)}
    for step in range(2 if checkpoint else 0, 4):
        total = torch.ones(1)
        dist.all_reduce(total)
        report({"x": total.item() + 10 * rank}, **{str(rank): str(step + 1)})


@pytest.mark.process
def test_workers_put_their_files_together_and_rank_0_s_numbers_count(tmp_path):
    def make():
        return RayTrainTrainer(trainer(2, sharded)).program({})

    def made():
        return RayTrainTrainer(trainer(2)).program({})

    with process_gang(2, str(tmp_path)) as gang:
        first = gang.run(make, assignment(tmp_path, stop=2), assignment(tmp_path, start=2, stop=3))
        model = gang.run(made, assignment(tmp_path, stop=2, name="m", **WORDS, halt_at=9))
    for one, other in first:
        assert (steps(one), steps(other)) == ([1, 2], [3])
    assert first[0][1].reports[0].metrics == {"x": 2.0}
    assert first[0][0].manifest.parts == ("rank-00000.tar", "rank-00001.tar")
    assert steps(model[0][0]) == [1, 2]


def leaving(config: dict[str, Any]) -> None:
    """Takes the process group apart at its end, on the ranks that it is told, or fails behind that."""
    try:
        sharded(config)
    finally:
        if ray.train.get_context().get_world_rank() in config["leaves"]:
            dist.destroy_process_group()
        if config.get("fails"):
            raise ValueError("no last layer")


@pytest.mark.process
def test_a_function_that_takes_the_process_group_apart_breaks_nothing(tmp_path):
    def make():
        return RayTrainTrainer(trainer(2, leaving)).program({})

    both, one, none = {"leaves": [0, 1]}, {"leaves": [1]}, {"leaves": []}
    with process_gang(2, str(tmp_path)) as gang:
        found = gang.run(
            make,
            assignment(tmp_path, stop=2, **both),
            assignment(tmp_path, start=2, stop=4, **one),
            assignment(tmp_path, stop=4, name="fails", fails=True, **both),
            assignment(tmp_path, stop=4, name="returns", **none),
        )
        alone = gang.run(make, assignment(tmp_path, stop=4, name="last", **both))
    for served in found:
        assert [steps(served[at]) for at in (0, 1, 3)] == [[1, 2], [3, 4], [1, 2, 3, 4]]
        assert "no last layer" in str(served[2])
    assert [steps(served[0]) for served in alone] == [[1, 2, 3, 4]] * 2


def test_a_job_without_channels_is_told_reported_and_attached_to(tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    printed = io.StringIO()
    tuner = HyperparameterTuner(
        trainer(0),
        "accuracy",
        {"lr": ContinuousParameter(0.0001, 0.1, "Logarithmic")},
        strategy="Hyperband",
        max_jobs=4,
        random_seed=3,
        storage_path=str(tmp_path),
        store=store,
        console=Console(file=printed, width=160),
    )
    tuner.fit(job_name="job")
    assert "accuracy" in printed.getvalue()
    with Store(store) as opened:
        assert "accuracy" in job_page(JobData.read(opened, "job")).html()
    attached = HyperparameterTuner.attach("job", store=store)
    assert attached.describe()["HyperParameterTuningJobStatus"] == "Completed"
    best = attached.best_estimator().model()
    with best.as_directory() as folder:
        assert os.listdir(folder) == ["model.pt"]
