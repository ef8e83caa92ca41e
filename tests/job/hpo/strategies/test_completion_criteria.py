"""Completion criteria: what ends a job before its last trial."""

from __future__ import annotations

from typing import Any

import pytest

from hpo import ContinuousParameter, TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import lay_out, run_all
from tests.support.refusals import mentions
from tests.support.simulated import simulate
from trainers.gangs.messages import Assignment

RANGES = {"eta": ContinuousParameter(0, 1)}


def criteria(**given: Any) -> TuningJobCompletionCriteriaConfig:
    return TuningJobCompletionCriteriaConfig(**given)


FLAT = run_all(80, 3)


def peak(assignment: Assignment, step: int) -> float:
    """A curve whose end is highest where eta is 0.3."""
    return (1 - (float(assignment.hyperparameters["eta"]) - 0.3) ** 2) * (1 - 0.5**step)


@pytest.mark.parametrize("plan", [FLAT, lay_out(80, 1, 9)])
def test_a_job_that_converged_ends_at_the_same_trial_for_any_number_of_gangs(plan: Any) -> None:
    options: dict[str, Any] = {"plan": plan, "curve": peak, "ranges": RANGES}
    found = set()
    for parallel in (1, 3, 8):
        controller, _, _ = simulate(
            **options, parallel=parallel, completion=criteria(complete_on_convergence=True), losses=frozenset({5, 9})
        )
        verdict = controller.trials.verdict
        assert verdict is not None
        assert verdict.converged
        mentions(controller.completed, "converged", verdict.last + 1)
        assert all(run.ahead for run in controller.runs.values() if run.number > verdict.last)
        found.add((verdict, controller.best().id))
    [(verdict, best)] = found
    assert verdict.last + 1 < plan.trials
    whole, _, _ = simulate(**options)
    assert whole.objective(whole.best()) - whole.objective(whole.runs[best]) < 0.01
