"""Completion criteria: what ends a job before its last trial."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hpo import ContinuousParameter, TuningJobCompletionCriteriaConfig
from hpo.ranking import Ranking
from hpo.strategies.completion_criteria import Completion
from hpo.strategies.hyperband import lay_out, run_all
from tests.support.refusals import mentions, refuses
from tests.support.simulated import outcome, simulate
from trainers import ConfigurationError
from trainers.gangs.messages import Assignment

PLAN = lay_out(30, 1, 30)
RANGES = {"eta": ContinuousParameter(0, 1)}


def completion(plan: Any = None, *, maximize: bool = True, **criteria: Any) -> Completion:
    config = TuningJobCompletionCriteriaConfig(**criteria)
    return Completion(config, plan, Ranking(maximize=maximize), ranges=RANGES, max_resource=30)


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("max_number_of_training_jobs_not_improving", 2, ("whole", "3")),
        ("max_number_of_training_jobs_not_improving", True, ("whole", "3")),
        ("complete_on_convergence", "yes", ("True", "False")),
        ("target_objective_metric_value", math.nan, "finite"),
        ("target_objective_metric_value", "0.9", "finite"),
    ],
)
def test_wrong_criteria_are_refused(field: str, value: Any, remedy: str | tuple[str, ...]) -> None:
    with refuses(ConfigurationError, field=field, value=value, remedy=remedy):
        TuningJobCompletionCriteriaConfig(**{field: value})


def test_criteria_survive_the_record() -> None:
    criteria = TuningJobCompletionCriteriaConfig(5, False, 0.9)
    again = TuningJobCompletionCriteriaConfig.from_json(criteria.to_json())
    assert vars(again) == vars(criteria)
    assert again.to_input_req() == {
        "BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 5},
        "ConvergenceDetected": {"CompleteOnConvergence": "Disabled"},
        "TargetObjectiveMetricValue": 0.9,
    }


def told(judge: Completion, *values: float) -> list[bool]:
    """Whether the job was complete after each trial, told of in the order of suggestion."""
    reasons = []
    for number, value in enumerate(values):
        judge.ended(number, value)
        reasons.append(judge.judge() is not None)
    return reasons


@given(value=st.floats(allow_nan=True), target=st.floats(-1e6, 1e6), maximize=st.booleans())
def test_a_target_is_reached_by_what_is_as_good_or_better(value: float, target: float, maximize: bool) -> None:
    [reached] = told(completion(maximize=maximize, target_objective_metric_value=target), value)
    assert reached == (math.isfinite(value) and (value >= target if maximize else value <= target))


def test_without_criteria_nothing_ends_a_job() -> None:
    assert not any(told(Completion(None, None, Ranking(maximize=True), ranges={}, max_resource=1), *[0.5] * 1000, 1e9))


def test_trials_that_do_not_improve_by_one_percent_are_counted() -> None:
    judge = completion(max_number_of_training_jobs_not_improving=3)
    # 0.82 is more than 1% above 0.805: the count begins again behind it.
    assert told(judge, 0.80, 0.805, 0.79, 0.82, 0.825, math.nan) == [False] * 6
    judge.ended(6, 0.70)
    verdict = judge.judge()
    assert verdict is not None
    mentions(verdict.reason, "3", "1%")
    assert verdict.last == 6


def test_smaller_is_better_where_it_is_minimised() -> None:
    judge = completion(maximize=False, max_number_of_training_jobs_not_improving=3)
    assert told(judge, 1.0, 0.9, 0.8, 0.7, 0.6, 0.599, 0.599, 0.599) == [False] * 7 + [True]


@given(
    values=st.lists(st.sampled_from([math.nan, math.inf, -math.inf, -1.0, 0.0, 5e-324, 1.0, 1.005, 1.01, 2.0])),
    maximize=st.booleans(),
)
def test_what_improves_is_finite_and_the_first_or_better_by_one_percent(values: list[float], maximize: bool) -> None:
    judge = completion(maximize=maximize, max_number_of_training_jobs_not_improving=100)
    best: float | None = None
    for number, value in enumerate(values):
        before = judge.not_improving
        told_of = math.isfinite(value)
        gain = 0.0 if best is None or not told_of else (value - best if maximize else best - value)
        improves = told_of and (best is None or (gain > 0 and gain >= 0.01 * abs(best)))
        judge.ended(number, value)
        judge.judge()
        assert judge.not_improving == (0 if improves else before + 1)
        best = value if told_of and (best is None or gain > 0) else best


@given(seed=st.integers(0, 2**32))
def test_a_brackets_trials_are_judged_together(seed: int) -> None:
    """However they end within it, a bracket counts only when its last trial has ended."""
    shuffled = random.Random(seed)
    judge = completion(PLAN, max_number_of_training_jobs_not_improving=3)
    first, second = PLAN.brackets[0].sizes[0], PLAN.brackets[1].sizes[0]
    numbers = list(range(first + second))
    shuffled.shuffle(numbers)
    verdicts = []
    for number in numbers:
        judge.ended(number, 0.5 + shuffled.random() / 4 if number < first else 0.5)
        verdicts.append(judge.judge())
    assert not any(verdicts[:-1])
    assert verdicts[-1] is not None
    assert verdicts[-1].last == first + second - 1


def test_trials_of_a_bracket_that_cuts_none_are_judged_one_by_one() -> None:
    judge = completion(run_all(30, 10), max_number_of_training_jobs_not_improving=3)
    assert told(judge, *[0.8] * 4) == [False, False, False, True]


@given(order=st.permutations(range(5)))
def test_the_order_in_which_trials_end_changes_nothing(order: list[int]) -> None:
    values = [0.5, 0.9, 0.4, 0.4, 0.4]
    judge = completion(max_number_of_training_jobs_not_improving=3)
    verdicts = []
    for number in order:
        judge.ended(number, values[number])
        verdicts.append(judge.judge())
    [verdict] = [verdict for verdict in verdicts if verdict]
    assert verdict.last == 4


def criteria(**given: Any) -> TuningJobCompletionCriteriaConfig:
    return TuningJobCompletionCriteriaConfig(**given)


def test_a_job_ends_within_the_rung_that_reaches_its_target() -> None:
    whole, _, _ = simulate()
    target = sorted(run.value for run in whole.runs.values())[-8]
    controller, _, _ = simulate(completion=criteria(target_objective_metric_value=target))
    assert controller.completed == controller.stopped
    mentions(controller.completed, "target_objective_metric_value", f"{target:g}")
    assert controller.objective(controller.best()) >= target
    assert controller.trained < whole.trained
    assert all(run.trial.is_finished() for run in controller.runs.values())
    assert controller.state.gangs_busy == 0, "what was being served has come back"


def test_a_job_ends_when_brackets_bring_no_improvement() -> None:
    """The first bracket's best is the best there is: the second one improves nothing."""
    first = {f"job-{number:03d}" for number in range(PLAN.brackets[0].sizes[0])}

    def curve(assignment: Assignment, step: int) -> float:
        return 0.9 if assignment.trial_id in first else 0.5

    controller, _, _ = simulate(curve=curve, completion=criteria(max_number_of_training_jobs_not_improving=3))
    mentions(controller.completed, "1%", controller.trials.completion.not_improving)
    assert controller.trials.completion.not_improving >= 3
    assert len(controller.runs) < PLAN.trials


def test_criteria_that_are_never_met_change_nothing() -> None:
    met_never = criteria(target_objective_metric_value=2.0, max_number_of_training_jobs_not_improving=100)
    controller, _, _ = simulate(completion=met_never)
    assert outcome(controller) == outcome(simulate()[0])
    assert not controller.completed


def test_convergence_is_enabled_in_the_form_of_the_api() -> None:
    asked = criteria(complete_on_convergence=True)
    assert asked.to_input_req() == {"ConvergenceDetected": {"CompleteOnConvergence": "Enabled"}}


FLAT = run_all(80, 3)


def test_a_job_that_still_finds_better_ones_goes_on() -> None:
    def better_and_better(assignment: Assignment, step: int) -> float:
        return float(assignment.trial_id[4:])

    controller, _, _ = simulate(
        plan=FLAT, curve=better_and_better, ranges=RANGES, completion=criteria(complete_on_convergence=True)
    )
    assert controller.trials.verdict is None
    assert len(controller.runs) == FLAT.trials
