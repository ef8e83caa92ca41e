"""Hyperband in Ray Tune. What the stock scheduler gets wrong is shown on both classes: it fails there, strictly."""

from __future__ import annotations

import math
from typing import Any

import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import HyperBandScheduler, TrialScheduler

from hpo.strategies.hyperband import lay_out
from hpo.strategies.scheduler import RESOURCE, SynchronousHyperBandScheduler
from tests.support.hpo.strategies.scheduler import both, ours, stock
from tests.support.refusals import refuses
from tests.support.simulated import METRIC, PLAN, rising, simulate
from trainers.errors import ConfigurationError
from trainers.gangs.messages import Assignment


@both
def test_the_first_bracket_is_the_most_aggressive(scheduler: Any) -> None:
    controller, _, _ = simulate(scheduler(), parallel=30, untuned=False)
    first = [run.resource for run in controller.runs.values()][:3]
    assert min(first) < 30


@both
def test_no_bracket_is_halved_before_it_is_full(scheduler: Any) -> None:
    """The first trial to pass its rung does so after its whole bracket has been added."""
    added_at_first_cut: list[int] = []
    instance = scheduler()
    original = instance.on_trial_result

    def watched(controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        action: str = original(controller, trial, result)
        cut = action == TrialScheduler.STOP or any(t.status == Trial.TERMINATED for t in controller.get_trials())
        if cut and not added_at_first_cut:
            added_at_first_cut.append(len(controller.get_trials()))
        return action

    instance.on_trial_result = watched
    simulate(instance, parallel=2, untuned=False)
    assert added_at_first_cut[0] >= PLAN.brackets[0].sizes[0]


@both
def test_a_trial_that_fails_after_a_halving_blocks_nothing(scheduler: Any) -> None:
    """Stock: `is_being_processed` stays set after the first halving, and the others of the rung wait for ever."""

    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == "job-012" and step > 5:
            raise ValueError("fails after its first rung, when the others of its bracket have reached their second")
        return 1.0 if assignment.trial_id == "job-012" else rising(assignment, step)

    def slow(assignment: Assignment) -> float:
        return 100.0 if assignment.trial_id == "job-012" else 1.0

    controller, _, _ = simulate(scheduler(), parallel=30, curve=curve, unit_seconds=slow, untuned=False)
    assert controller.runs["job-012"].failure
    assert not controller.search_failure
    assert all(run.trial.is_finished() for run in controller.runs.values())


@pytest.mark.parametrize(
    "make",
    [
        lambda: SynchronousHyperBandScheduler(lay_out(3, 10, 30), metric=METRIC, mode="max"),
        pytest.param(
            lambda: HyperBandScheduler(metric=METRIC, mode="max", max_t=30),
            marks=pytest.mark.xfail(strict=True, reason="counts training_iteration, which begins again at 1"),
        ),
    ],
)
def test_units_are_counted_over_a_trials_whole_life(make: Any) -> None:
    """Tune's own `training_iteration` counts from 1 again when a paused trial is resumed in a new actor."""
    scheduler = make()
    trial = Trial("warmband", trial_id="t", stub=True)

    class Nobody:
        def stop_trial(self, trial: Trial) -> None: ...

    scheduler.on_trial_add(Nobody(), trial)
    trial.set_status(Trial.RUNNING)
    actions = [
        scheduler.on_trial_result(Nobody(), trial, {METRIC: 0.5, RESOURCE: step, "training_iteration": restarted})
        for step, restarted in [
            *((step, step) for step in range(1, 11)),
            *((step, step - 10) for step in range(11, 31)),
        ]
    ]
    assert actions[-1] != TrialScheduler.CONTINUE


@pytest.mark.parametrize("scheduler", [ours, stock])
def test_a_nan_never_wins(scheduler: Any) -> None:
    """The stock one sorts NaN wherever it falls, so that none is handed to a scheduler."""
    bad = {f"job-{number:03d}" for number in range(0, 30, 2)}

    def curve(assignment: Assignment, step: int) -> float:
        return math.nan if assignment.trial_id in bad else rising(assignment, step)

    controller, _, _ = simulate(scheduler(), parallel=30, curve=curve, untuned=False)
    first_rungs = [PLAN.brackets[0].rungs[0], PLAN.brackets[1].rungs[0]]
    assert all(controller.runs[trial].resource in first_rungs for trial in bad if int(trial[4:]) < 22)


def test_more_trials_than_planned_are_refused() -> None:
    scheduler = SynchronousHyperBandScheduler(lay_out(1, 1, 3), metric=METRIC, mode="max")
    scheduler.on_trial_add(None, Trial("warmband", trial_id="a", stub=True))
    with refuses(ConfigurationError, field="plan", value=1, remedy="max_jobs"):
        scheduler.on_trial_add(None, Trial("warmband", trial_id="b", stub=True))


def test_a_missing_mode_is_named() -> None:
    scheduler = SynchronousHyperBandScheduler(PLAN, metric=METRIC)
    with refuses(ConfigurationError, field=("mode", METRIC), value=None, remedy=("max", "min")):
        scheduler.on_trial_add(None, Trial("warmband", trial_id="a", stub=True))


def test_it_is_ray_tunes_own_kind_and_takes_the_mode_from_tune() -> None:
    scheduler = SynchronousHyperBandScheduler(PLAN)
    assert isinstance(scheduler, HyperBandScheduler)
    assert scheduler.set_search_properties(METRIC, "max")
    scheduler.on_trial_add(None, Trial("warmband", trial_id="a", stub=True))
    assert "11 to" not in scheduler.debug_string()
    assert "1 training" in scheduler.debug_string()
