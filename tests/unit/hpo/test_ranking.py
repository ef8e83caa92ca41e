"""Which trial is better: one order, which the search, its decisions, its views, its models and the record all go by."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st
from ray.tune.experiment import Trial

from hpo.jobs.files.retention import Retention
from hpo.observers.counters import Tally
from hpo.ranking import Ranking, Standing, configuration, mean_error
from hpo.record.job_view import best_trial, ranked
from hpo.search.objective import Comparison
from hpo.search.trial import TrialRun, rank_of
from hpo.strategies.hyperband import Bracket, Hyperband, Plan
from hpo.strategies.repeats import mean
from tests.support.rows import job, trial_with
from tests.support.simulated import PLAN, search_of


class Came(NamedTuple):
    """What a trial came to: its last value and its best, each with its resource; and how it ended."""

    last: float
    resource: int
    best: float
    best_resource: int
    status: str


values = st.sampled_from([0.25, 0.5, 0.75, -0.5, 0.0, math.nan])
units = st.integers(1, 3)
ends = st.sampled_from(["Completed", "Stopped", "Completed", "Diverged", "Failed"])
trials = st.lists(st.builds(Came, values, units, values, units, ends), min_size=1, max_size=9)


def run_of(number: int, came: Came) -> TrialRun:
    return TrialRun(
        trial=Trial("warmband", trial_id=f"t{number}", stub=True),
        number=number,
        hyperparameters={},
        seed=0,
        limit=9,
        value=came.last,
        resource=came.resource,
        best_value=came.best,
        best_resource=came.best_resource,
        failure="broke" if came.status == "Failed" else "",
        diverged="not finite" if came.status == "Diverged" else "",
        checkpoint=f"t{number}/model",
    )


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_a_value_that_is_not_finite_is_behind_all_that_are(value: float | None, maximize: bool) -> None:
    ranking = Ranking(maximize=maximize)
    assert max(ranking.rank(finite, 9, 5) for finite in (-1e300, 0.0, 1e300)) < ranking.rank(value, 1, 0)
    assert value is None or not ranking.better(value, 0.0)


@given(trials, st.booleans(), st.booleans())
def test_all_have_the_same_order(came: list[Came], maximize: bool, by_best: bool) -> None:
    counts = [(each.best, each.best_resource) if by_best else (each.last, each.resource) for each in came]
    lost = [{"Diverged": 1, "Failed": 2}.get(each.status, 0) for each in came]

    def place(number: int) -> tuple[float, ...]:
        value, resource = counts[number]
        finite = math.isfinite(value)
        return (lost[number], not finite, (-value if maximize else value) if finite else 0, resource, number)

    order = sorted(range(len(came)), key=place)
    valued = [number for number in order if not lost[number] and math.isfinite(counts[number][0])]
    best = next(iter(valued), None)

    search = search_of(PLAN, parallel=1, mode="max" if maximize else "min", best_value=by_best)
    runs = [run_of(number, each) for number, each in enumerate(came)]
    assert [run.number for run in sorted(runs, key=partial(rank_of, search.ranking))] == order
    found = Comparison(search).best(runs)
    assert (found and found.number) == best

    tally = Tally(plan=PLAN, ranking=search.ranking)
    for run in reversed(runs):
        tally.trial(run)
    assert tally.best is found

    keeps = Retention(2)
    for run in runs:
        keeps.served(run)
        keeps.ended(run, rank_of(search.ranking, run))
    assert [each.run.number for each in keeps.listed] == valued[:2]

    aim = {"objective_type": "Maximize" if maximize else "Minimize", "objective_value": "best" if by_best else "last"}
    rows = [
        trial_with(
            number=number,
            status=each.status,
            objective=each.last if math.isfinite(each.last) else None,
            resource=each.resource,
            best_objective=each.best if math.isfinite(each.best) else None,
            best_resource=each.best_resource,
        )
        for number, each in enumerate(came)
    ]
    assert [row.number for row in ranked(job(spec=aim), rows)] == order
    first = best_trial(job(spec=aim), rows)
    assert (first and first.number) == best


@given(st.lists(values, min_size=3, max_size=9), st.booleans())
def test_a_rung_goes_by_it_too(reported: list[float], maximize: bool) -> None:
    size = len(reported)
    core = Hyperband(Plan(brackets=(Bracket(rungs=(1, 3), sizes=(size, 2)),), max_resource=3), maximize=maximize)
    for number in range(size):
        core.add(str(number))
    for number in reversed(range(size)):
        core.report(str(number), 1, reported[number])
    ranking = Ranking(maximize=maximize)
    order = sorted(range(size), key=lambda number: ranking.rank(reported[number], 1, number))
    [cut] = core.cuts
    assert [int(trial) for trial in (*cut.went_on, *cut.stopped)] == order
    assert len(cut.went_on) == min(2, sum(map(math.isfinite, reported)))


@given(values, values, st.booleans())
def test_a_value_is_better_where_it_ranks_before(one: float, other: float, maximize: bool) -> None:
    ranking = Ranking(maximize=maximize)
    assert ranking.better(one, other) is (ranking.rank(one, 0, 0) < ranking.rank(other, 0, 0))


def test_means_of_numbers_whose_sum_is_no_float() -> None:
    standings = [Standing(value=1.7e308, resource=1, number=number) for number in range(3)]
    assert configuration(standings, 3).value == pytest.approx(1.7e308)
    assert mean([1.7e308, 1.5e308]) == pytest.approx(1.6e308)
    assert mean_error([1.7e308, -1.7e308]) is None
    assert mean_error([1.0, 3.0]) == 1.0
