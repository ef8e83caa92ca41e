"""Points to evaluate as a job: its first trials have them, whatever searches, runs at once or dies; and its doors."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hpo import ContinuousParameter, HyperparameterTuner, IntegerParameter
from hpo.ranges import decode
from hpo.record.store import Store, TrialRow
from hpo.search.controller import Controller
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.strategies import Task, by_model, by_number, lay_out_cutting
from hpo.suggestions import FEWEST_TRIALS
from tests.support.driving import CHANNELS, Counting, answer, tuner
from tests.support.simulated import METRIC, Kept, rising, search_of, uneven

POINTS = [{"eta": 0.3}, {"subsample": 1, "eta": 0.25}]
RANGES = {"eta": ContinuousParameter(0.0, 1.0), "depth": IntegerParameter(1, 9)}


def trials(folder: Path, name: str) -> list[TrialRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return [row for row in store.trials(name) if row.number >= 0]


def test_the_first_trials_have_them_and_all_else_is_as_it_was(tmp_path: Path) -> None:
    tuner(tmp_path).fit(CHANNELS, job_name="without")
    tuner(tmp_path, points_to_evaluate=POINTS).fit(CHANNELS, job_name="with")
    without, rows = trials(tmp_path, "without"), trials(tmp_path, "with")
    assert rows[0].hyperparameters == {**without[0].hyperparameters, "eta": 0.3}
    assert rows[1].hyperparameters == {"eta": 0.25, "subsample": 1.0}
    assert [row.hyperparameters for row in rows[2:]] == [row.hyperparameters for row in without[2:]]


def test_a_job_that_is_attached_to_and_resumed_has_them(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    tuner(tmp_path, points_to_evaluate=POINTS).fit(CHANNELS, job_name="whole")
    interrupted = Counting(3, lambda: signal.raise_signal(signal.SIGINT))
    broken = tuner(tmp_path, (interrupted,), points_to_evaluate=POINTS)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(CHANNELS, job_name="broken")
    again = HyperparameterTuner.attach("broken", store=store)
    assert again.describe()["HyperParameterTuningJobStatus"] == "Stopped"
    assert again.points_to_evaluate == [{"eta": 0.3}, {"subsample": 1.0, "eta": 0.25}]
    again.resume(inputs=CHANNELS)
    assert answer(tmp_path, "broken") == answer(tmp_path, "whole")


def tried(gangs: int, points: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """The configurations of a search with a model."""
    plan = lay_out_cutting(20, 1, 9)
    simulated = SimulatedGangs(rising, metric=METRIC, room=gangs, start_seconds=3, unit_seconds=uneven)
    task = Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=3, parallel=gangs)
    made = by_model(task, by_number(plan, 8))
    controller = Controller(
        search_of(plan, parallel=gangs, workers=lambda hyperparameters: 1, untuned=False, points=points),
        searcher=made.searcher,
        scheduler=made.scheduler,
        decode=partial(decode, RANGES),
        gangs=simulated,
        record=Kept(),
        clock=simulated.clock,
    )
    controller.run()
    return [run.hyperparameters for run in controller.runs.values()]


def test_a_model_learns_from_them_for_any_number_of_gangs() -> None:
    points = ({"eta": 0.9, "depth": 2}, {"eta": 0.05}, {"depth": 9})
    one, without = tried(1, points), tried(1, ())
    assert [one[0], one[1]["eta"], one[2]["depth"]] == [points[0], 0.05, 9]
    asked = FEWEST_TRIALS + 8 - 1
    assert one[3:asked] == without[3:asked]  # Drawn at random, before a model is asked.
    assert one[asked:] != without[asked:]
    assert one == tried(2, points) == tried(4, points)
