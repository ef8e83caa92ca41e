"""Completion criteria of a search that does not know an order of its trials."""

from __future__ import annotations

import math
import random

from hpo import ContinuousParameter
from hpo.ranges import ParameterRange
from hpo.ranking import Ranking
from hpo.strategies import TuningJobCompletionCriteriaConfig, Verdict
from hpo.strategies.asha import AsTheyCome
from hpo.strategies.asha.promotions import lay_out_asynchronous
from hpo.strategies.hyperband import MOST_JOBS
from tests.support.refusals import mentions

RANGES: dict[str, ParameterRange] = {"x": ContinuousParameter(0, 1)}


def judges(criteria: TuningJobCompletionCriteriaConfig | None) -> AsTheyCome:
    plan = lay_out_asynchronous(60, 1, 9)
    return AsTheyCome(criteria, plan, Ranking(maximize=True), ranges=RANGES, max_resource=9)


def test_a_target_is_met_by_whoever_meets_it_first_and_every_trial_counts() -> None:
    completion = judges(TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.9))
    completion.reached(7, 1, 0.8)
    assert completion.judge() is None
    completion.reached(7, 3, 0.91)
    completion.reached(3, 1, 0.95)
    verdict = completion.judge()
    assert verdict is not None
    mentions(verdict.reason, "target_objective_metric_value", "0.9", "0.91")
    assert verdict == Verdict(reason=verdict.reason, last=MOST_JOBS)


def test_trials_that_come_without_improving_the_best_are_counted_once() -> None:
    completion = judges(TuningJobCompletionCriteriaConfig(3))
    completion.reached(0, 1, 0.5)
    completion.reached(1, 1, 0.4)
    completion.reached(1, 3, 0.45)
    completion.ended(2, math.nan, failed=True)
    assert (completion.not_improving, completion.judge()) == (2, None)
    completion.reached(0, 3, 0.6)
    assert completion.not_improving == 0
    for number in (3, 4, 5):
        completion.reached(number, 1, 0.2)
    verdict = completion.judge()
    assert verdict is not None
    mentions(verdict.reason, "1%", "3")


def test_nobody_waits_to_be_judged() -> None:
    completion = judges(TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.9))
    assert not completion.asked
    completion.reached(0, 1, 0.5)
    assert not completion.open
    assert completion.judged == MOST_JOBS


def test_a_job_whose_first_trials_all_fail_is_hopeless() -> None:
    completion = judges(None)
    for number in range(5):
        assert completion.judge() is None
        completion.ended(number, math.nan, failed=True)
    verdict = completion.judge()
    assert verdict is not None
    assert verdict.hopeless


def test_a_search_has_converged_by_the_trials_that_came() -> None:
    completion = judges(TuningJobCompletionCriteriaConfig(complete_on_convergence=True))
    stream, came = random.Random(3), 0
    while (verdict := completion.judge()) is None:
        number = 59 - came  # The last that was suggested comes first.
        x = stream.random()
        completion.begun(number, {"x": x})
        for rung in (1, 3, 9):
            completion.reached(number, rung, (1 - (x - 0.3) ** 2) * rung / 9)
        came += 1
    assert verdict.converged
    assert 30 <= came < 60
    mentions(verdict.reason, came)
    assert verdict.last == MOST_JOBS
