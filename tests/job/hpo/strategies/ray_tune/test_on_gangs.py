"""Searchers and schedulers of other libraries, run on simulated gangs to the end of a search."""

from __future__ import annotations

from itertools import product

import pytest
import torch  # noqa: F401  # GPSampler imports it when it is first asked, which takes seconds.
from ray.tune.search.bohb import TuneBOHB

from tests.support.hpo.strategies.ray_tune.on_gangs import JOBS, SCHEDULERS, SEARCHERS, UNITS, near, searched, trials
from tests.support.refusals import mentions
from trainers.gangs.messages import Assignment

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
"""HpBandSter 0.7.4 with ConfigSpace 1.2 and statsmodels 0.15."""


@pytest.mark.parametrize("scheduler", [name for name in SCHEDULERS if name != "none"])
@pytest.mark.parametrize("parallel", [1, 4])
def test_each_scheduler_searches_to_the_end(scheduler: str, parallel: int) -> None:
    searcher = TuneBOHB if scheduler == "HyperBandForBOHB" else None
    found = searched(parallel, searcher=searcher, scheduler=SCHEDULERS[scheduler])
    assert not found.stopped
    assert len(found.runs) == JOBS
    assert all(run.trial.is_finished() for run in found.runs.values())
    assert (found.trained < JOBS * UNITS) == (scheduler != "FIFO")


@pytest.mark.parametrize(
    ("searcher", "scheduler"), [pair for pair in product(SEARCHERS, SCHEDULERS) if pair != ("random", "none")]
)
def test_one_after_another_the_seed_decides(searcher: str, scheduler: str) -> None:
    parts = {"searcher": SEARCHERS[searcher], "scheduler": SCHEDULERS[scheduler]}
    first = trials(searched(jobs=9, **parts))
    assert trials(searched(jobs=9, **parts)) == first
    assert trials(searched(jobs=9, seed=8, **parts)) != first


def test_the_stock_hyperband_sees_its_brackets_full_for_any_number_at_once() -> None:
    """4 trials to the end, 6 from 9 units and 10 of 12 from 3: as in Tune where it shows the scheduler a next one."""
    assert [searched(parallel, scheduler=SCHEDULERS["HyperBand"]).trained for parallel in (1, 2, 4)] == [288] * 3


@pytest.mark.parametrize(("scheduler", "least"), [("HyperBand", 3), ("HyperBandForBOHB", 1)])
def test_where_the_stock_hyperband_waits_for_ever_the_search_ends_and_says_so(scheduler: str, least: int) -> None:
    """The last to come to a rung fails, after its bracket was halved: `is_being_processed` stays set, and others wait.

    HyperBandForBOHB does not: it looks at its brackets again where nothing trains.
    """
    beyond: set[str] = set()

    def failing(assignment: Assignment, step: int) -> float:
        if assignment.start == least:
            beyond.add(assignment.trial_id)
            if len(beyond) == 4:
                raise ValueError("no further")
        return near(assignment, step)

    found = searched(
        searcher=TuneBOHB if scheduler == "HyperBandForBOHB" else None, scheduler=SCHEDULERS[scheduler], curve=failing
    )
    assert any(run.failure for run in found.runs.values())
    assert bool(found.search_failure) == (scheduler == "HyperBand")
    if found.search_failure:
        mentions(found.search_failure, "scheduler", "3")
    assert found.best() is not None
    assert all(run.trial.is_finished() for run in found.runs.values())
