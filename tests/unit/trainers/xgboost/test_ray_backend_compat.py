"""Both sides of the adapter are what it was written for: these fail when xgboost_ray, XGBoost or Ray changes."""

from __future__ import annotations

import inspect
import pickle
from importlib.metadata import version
from typing import Any

import pytest
import xgboost
from xgboost.collective import CommunicatorContext
from xgboost.tracker import RabitTracker
from xgboost_ray import RayParams, main

from tests.support.trainers.xgboost.ray_backend_compat import READ
from trainers.gangs.messages import Report
from trainers.xgboost.ray_backend import compat as compat
from trainers.xgboost.ray_backend.options import FIELDS
from trainers.xgboost.ray_backend.training import Journal


@pytest.mark.parametrize("package", sorted(compat.TESTED))
def test_the_versions_are_those_that_were_tested(package: str) -> None:
    assert version(package) == compat.TESTED[package], (
        f"run the tests of xgboost_ray with {package} {version(package)}, then renew TESTED in {compat.__name__}"
    )


def test_ray_params_has_the_fields_that_users_may_set() -> None:
    assert set(FIELDS) < set(inspect.signature(RayParams).parameters)


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (RabitTracker.__init__, ["self", "n_workers", "host_ip", "port", "sortby", "timeout"]),
        (RabitTracker.start, ["self"]),
        (RabitTracker.wait_for, ["self", "timeout"]),
        (RabitTracker.worker_args, ["self"]),
        (CommunicatorContext.__init__, ["self", "args"]),
    ],
    ids=lambda value: getattr(value, "__qualname__", None),
)
def test_what_the_adapter_rests_on_in_xgboost_is_as_it_was_read(function: Any, parameters: list[str]) -> None:
    assert list(inspect.signature(function).parameters) == parameters


def test_without_the_adapter_xgboost_ray_does_not_start() -> None:
    start = next(iter(READ))  # As it was before any test called `mend`.
    with pytest.raises((TypeError, ValueError, AttributeError, xgboost.core.XGBoostError)):
        start(1)


def test_mending_replaces_two_functions_and_nothing_else() -> None:
    before = dict(vars(main))
    compat.mend()
    compat.mend()
    changed = {name for name, value in vars(main).items() if value is not before.get(name)}
    assert changed <= {"_start_rabit_tracker", "_stop_rabit_tracker"}
    assert main._start_rabit_tracker is compat.start_tracker
    assert main._stop_rabit_tracker is compat.stop_tracker


def test_the_tracker_brings_workers_together_under_their_actors_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As xgboost_ray does it: arguments travel to the actor, which names its task and joins."""
    monkeypatch.setattr(compat, "get_actor_rank", lambda: 7)
    tracker, arguments = compat.start_tracker(1)
    arrived = pickle.loads(pickle.dumps(arguments))
    context = main._RabitContext("140241", arrived)
    assert context.args["DMLC_TASK_ID"] == "00000007"
    with context:
        assert (xgboost.collective.get_rank(), xgboost.collective.get_world_size()) == (0, 1)
    compat.stop_tracker(tracker)
    assert not hasattr(tracker, "handle"), "freed, so that nothing is left to say when Python lets it go"


def test_a_tracker_whose_workers_died_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "STOP_SECONDS", 1)
    tracker, _ = compat.start_tracker(2)
    compat.stop_tracker(tracker)
    assert not hasattr(tracker, "handle")


def test_steps_are_timed_by_the_clock_of_the_process_that_takes_them() -> None:
    """One that is started again may be on a machine whose clock is an hour behind; its start is no training."""
    journal = Journal()
    journal.begin()
    for began, at, step in [(5000.0, 5001.0, 1), (5000.0, 5003.0, 2), (1500.0, 1501.0, 2), (1500.0, 1502.0, 3)]:
        journal.note(began, at, Report(step=step, metrics={}))
    assert journal.training_seconds == pytest.approx(5.0)
    assert journal.first_step_at == 5000.0
    journal.begin()
    assert journal.training_seconds == 0.0
