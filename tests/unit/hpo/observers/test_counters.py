"""What a running job's trials add up to, against what the controller knows at its end and on its way."""

from __future__ import annotations

import itertools
from operator import itemgetter

import pytest

from hpo.observers.counters import Tally
from hpo.ranking import Ranking
from hpo.search.objective import Comparison
from hpo.strategies.hyperband import lay_out, run_all
from tests.support.hpo.observers.counters import Counting
from tests.support.simulated import PLAN, Kept, rising, simulate


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
