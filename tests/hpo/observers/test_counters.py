"""What a running job's trials add up to, against what the controller knows at its end and on its way."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from operator import itemgetter

import pytest
from hypothesis import given, settings, strategies as st

from hpo.observers.counters import Tally
from hpo.ranking import Ranking
from hpo.search.objective import Comparison
from hpo.search.observer import JobState
from hpo.search.trial import TrialRun, status_of
from hpo.strategies.hyperband import Cut, Plan, lay_out, run_all
from tests.support.simulated import PLAN, Kept, rising, search_of, simulate
from trainers.gangs.messages import Assignment


class Counting(Kept):
    """Hands all that happens to a tally, and compares it with the controller each time."""

    def __init__(self, plan: Plan, by_best: bool = False) -> None:
        super().__init__()
        self.tally = Tally(plan=plan, ranking=Ranking(maximize=True, by_best=by_best))
        self.comparison = Comparison(search_of(plan, parallel=1, best_value=by_best))
        self.runs: dict[str, TrialRun] = {}

    def trial(self, run: TrialRun) -> None:
        if run.tuned:
            self.runs[run.id] = run
        self.tally.trial(run)

    def rung(self, cut: Cut) -> None:
        self.tally.rung(cut)

    def progress(self, state: JobState) -> None:
        assert self.tally.best is self.comparison.best(self.runs.values())
        if self.tally.best is not None:
            assert self.tally.best_value == self.comparison.objective(self.tally.best)
        assert +self.tally.statuses == Counter(status_of(run) for run in self.runs.values())
        reached = [
            [sum(run.bracket == index and run.resource >= rung for run in self.runs.values()) for rung in b.rungs]
            for index, b in enumerate(self.tally.plan.brackets)
        ]
        assert [[place.reached for place in places] for places in self.tally.places] == reached


def jumping(assignment: Assignment, step: int) -> float:
    """A curve that falls as often as it rises, with failures and values that are none."""
    draw = random.Random(f"{assignment.trial_id}/{step}")
    if draw.random() < 0.02:
        raise ValueError("no")
    return math.nan if draw.random() < 0.1 else draw.random()


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(1, 6), st.booleans())
def test_it_counts_what_the_controller_would_find_by_looking_at_all(jobs: int, parallel: int, by_best: bool) -> None:
    plan = lay_out(jobs, 1, 9)
    record = Counting(plan, by_best)
    controller, _, _ = simulate(plan=plan, record=record, parallel=parallel, curve=jumping, best_value=by_best)
    record.progress(controller.state)
    assert record.runs == controller.runs
    assert record.tally.ended == jobs


def test_the_places_of_a_whole_job_are_those_of_the_plan() -> None:
    record = Counting(PLAN)
    simulate(record=record)
    for bracket, places in zip(PLAN.brackets, record.tally.places, strict=True):
        assert tuple(place.reached for place in places) == bracket.sizes
        for place, further in itertools.pairwise(places):
            assert (place.went_on, place.stopped) == (further.size, place.size - further.size)
            assert place.decided
        assert not places[-1].decided


def test_brackets_that_are_alike_are_added_up() -> None:
    plan = lay_out(44, 1, 9)
    record = Counting(plan)
    simulate(plan=plan, record=record)
    assert list(record.tally.kinds) == list(dict.fromkeys(plan.brackets))
    for bracket, places in record.tally.kinds.items():
        number = plan.brackets.count(bracket)
        assert [place.size for place in places] == [size * number for size in bracket.sizes]
        assert [place.reached for place in places] == [size * number for size in bracket.sizes]
        assert all(place.decided for place in places[:-1])


def test_trials_of_their_own_length_reach_their_rung() -> None:
    plan = run_all(6, 30)
    tally = Tally(plan=plan, ranking=Ranking(maximize=True))
    record = Kept()
    record.trial = tally.trial  # type: ignore[method-assign]
    simulate(
        plan=plan, record=record, static={"num_round": 4, "eta": 0.1}, length=itemgetter("num_round"), curve=rising
    )
    assert tally.places[0][0].reached == 6


@pytest.mark.parametrize("maximize", [True, False])
def test_the_first_of_two_that_are_equal_is_the_best(maximize: bool) -> None:
    tally = Tally(plan=PLAN, ranking=Ranking(maximize=maximize))
    controller, _, _ = simulate()
    runs = list(controller.runs.values())[:3]
    for run in runs:
        run.value, run.resource = 0.5, 3
    for run in reversed(runs):
        tally.trial(run)
    assert tally.best is runs[0]


def test_of_two_that_are_equal_the_one_of_less_resource_is_the_best() -> None:
    tally = Tally(plan=PLAN, ranking=Ranking(maximize=True))
    controller, _, _ = simulate()
    first, second = list(controller.runs.values())[:2]
    (first.value, first.resource), (second.value, second.resource) = (0.5, 9), (0.5, 3)
    assert [tally.trial(run) for run in (first, second)] == [True, False]
    assert tally.best is second
    assert tally.best is Comparison(controller.search).best([first, second])
