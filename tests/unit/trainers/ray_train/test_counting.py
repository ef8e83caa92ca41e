"""Units of a Ray Train function: reports without the objective, and trials that begin again instead of going on."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import ray.train

from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.ray_train_job import trainer
from tests.support.refusals import mentions, refuses
from trainers import RayTrainTrainer, TrialError
from trainers.gangs.messages import Assignment, Segment
from trainers.metrics import began_again, flat

Function = Callable[[dict[str, Any]], None]


def run(function: Function, folder: Path, *stops: int, objective: str = "x") -> list[Segment]:
    """Serves a trial from rung to rung."""
    rungs = pairwise((0, *stops))
    plan: list[Assignment] = [replace(assignment(folder, *rung), objective=objective) for rung in rungs]
    found = serve_alone(RayTrainTrainer(trainer(0, function)).program({}), *plan)
    for segment in found:
        if isinstance(segment, Exception):
            raise segment
    return found


def reported(segments: list[Segment], name: str = "x") -> list[tuple[int, float]]:
    return [(each.step, each.metrics[name]) for segment in segments for each in segment.reports]


def again(segments: list[Segment]) -> list[int]:
    return [segment.details.get("units_trained_again", 0) for segment in segments]


def report(metrics: dict[str, Any], epoch: int | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "epoch").write_text(str(epoch))
        kept = None if epoch is None else ray.train.Checkpoint.from_directory(folder)
        ray.train.report(metrics, checkpoint=kept)


def never_asks(config: dict[str, Any]) -> None:
    for epoch in range(1, 10):
        report({"x": float(epoch), "time_total_s": id(object())}, epoch)


def asks_in_vain(config: dict[str, Any]) -> None:
    if ray.train.get_checkpoint():
        pass
    never_asks(config)


def opens_in_vain(config: dict[str, Any]) -> None:
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            Path(folder, "epoch").read_text()
    never_asks(config)


def goes_on(config: dict[str, Any]) -> None:
    first = 1
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            first = int(Path(folder, "epoch").read_text()) + 1
    for epoch in range(first, 10):
        report({"x": config.get("constant", float(epoch))}, epoch)


def reports_no_files(config: dict[str, Any]) -> None:
    ray.train.get_checkpoint()
    for epoch in range(1, 10):
        report({"x": float(epoch)})


@pytest.mark.parametrize("function", [never_asks, asks_in_vain, reports_no_files])
def test_a_function_that_begins_again_is_counted_from_one(tmp_path: Path, function: Function) -> None:
    found = run(function, tmp_path, 1, 3, 9)
    assert reported(found) == [(unit, float(unit)) for unit in range(1, 10)]
    assert again(found) == [0, 1, 3]


def test_a_function_that_opens_its_files_in_vain_shows_by_its_values(tmp_path: Path) -> None:
    found = run(opens_in_vain, tmp_path, 3, 9)
    assert reported(found) == [(unit, float(unit)) for unit in range(1, 10)]
    assert again(found) == [0, 3]


def test_a_function_that_goes_on_is_counted_on(tmp_path: Path) -> None:
    assert reported(run(goes_on, tmp_path / "a", 1, 3, 9)) == [(unit, float(unit)) for unit in range(1, 10)]
    found = run(lambda config: goes_on({"constant": 0.5}), tmp_path / "b", 1, 3, 9)  # Its values do not tell.
    assert again(found) == [0, 0, 0]


def test_one_that_began_again_is_the_training_of_before_to_the_bit(tmp_path: Path) -> None:
    def function(config: dict[str, Any]) -> None:
        import random

        for epoch in range(9):
            report({"x": random.random()}, epoch)

    found = run(function, tmp_path / "paused", 1, 3, 9)
    assert reported(found) == reported(run(function, tmp_path / "whole", 9))


def test_a_fork_of_a_function_that_never_asks_begins_again_too(tmp_path: Path) -> None:
    [parent] = run(never_asks, tmp_path, 3)
    fork = replace(
        assignment(tmp_path, 3, 5, name="fork", lr=0.5), objective="x", checkpoint=parent.checkpoint, seed=12
    )
    [found] = serve_alone(RayTrainTrainer(trainer(0, never_asks)).program({}), fork)
    assert (reported([found]), again([found])) == ([(4, 4.0), (5, 5.0)], [3])


def test_a_report_of_the_objective_is_a_unit_and_another_is_none(tmp_path: Path) -> None:
    def function(config: dict[str, Any]) -> None:
        first = 0
        if checkpoint := ray.train.get_checkpoint():
            with checkpoint.as_directory() as folder:
                first = int(Path(folder, "epoch").read_text()) + 1
        for epoch in range(first, 8):
            report({"train": epoch, **({"val": {"x": float(epoch)}} if epoch % 2 else {"val": {"x": None}})}, epoch)

    found = run(function, tmp_path, 1, 3, 6, objective="val/x")
    # It returns after 4 units, whose last stands for the others.
    assert reported(found, "val/x") == [(1, 1.0), (2, 3.0), (3, 5.0), (4, 7.0), (5, 7.0), (6, 7.0)]
    assert reported(found, "train")[:3] == [(1, 1.0), (2, 3.0), (3, 5.0)]
    assert again(found) == [0, 0, 0]


def test_metrics_of_reports_between_are_those_of_the_next_unit(tmp_path: Path) -> None:
    def function(config: dict[str, Any]) -> None:
        for epoch in range(2):
            report({"train": float(epoch)})
            report({"x": float(epoch)}, epoch)

    [segment] = run(function, tmp_path, 2)
    assert [each.metrics for each in segment.reports] == [{"train": 0.0, "x": 0.0}, {"train": 1.0, "x": 1.0}]


def test_an_objective_that_never_comes_is_an_error(tmp_path: Path) -> None:
    with refuses(TrialError, field=("loss", "'x'")):
        run(lambda config: report({"loss": 1.0}), tmp_path, 1)


def test_a_pause_is_said_to_cost_where_no_checkpoint_is_read() -> None:
    mentions(RayTrainTrainer("tests.support.unread_checkpoints:ray_trainer").pause_obstacle(), "get_checkpoint")
    assert not RayTrainTrainer(trainer(0)).pause_obstacle()


def test_names_of_nested_metrics_and_values_that_tell() -> None:
    assert flat({"val": {"loss": 1, "top": {"1": 2}}, "n": 3}) == {"val/loss": 1, "val/top/1": 2, "n": 3}
    nan = float("nan")
    assert began_again({"x": 1.0, "time": 3.0}, {"x": 1.0, "time": 2.0}, {"x": 2.0})
    assert began_again({"x": 1.0, "n": nan}, {"x": 1.0, "n": nan}, {"x": 2.0})
    assert not began_again({"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 2.0}, {"x": 2.0})
    assert not began_again({"x": 1.0}, {"x": 1.0}, {"x": 1.0})
    assert not began_again({"x": 1.0}, {}, {"x": 2.0})
