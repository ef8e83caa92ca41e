"""A search by others' parts that is broken off decides again as it did, with several trials at once, too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from optuna.samplers import TPESampler
from ray.tune.schedulers import AsyncHyperBandScheduler, HyperBandForBOHB, HyperBandScheduler, MedianStoppingRule
from ray.tune.search.bohb import TuneBOHB
from ray.tune.search.hyperopt import HyperOptSearch
from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import ContinuousParameter
from hpo.strategies.hyperband import Plan, run_all
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.strategy import Prepared, Task
from tests.support.broken_off import Service, answer
from tests.support.properties import examples
from tests.support.simulated import METRIC

UNITS = 9
PARTS: dict[str, dict[str, Any]] = {
    "OptunaSearch, ASHA": {
        "searcher": OptunaSearch,
        "scheduler": (AsyncHyperBandScheduler, {"max_t": UNITS, "reduction_factor": 3}),
    },
    "TPESampler, brackets": {
        "searcher": TPESampler,
        "scheduler": (AsyncHyperBandScheduler, {"max_t": UNITS, "reduction_factor": 3, "brackets": 2}),
    },
    "HyperOptSearch, median": {
        "searcher": (HyperOptSearch, {"n_initial_points": 3}),
        "scheduler": (MedianStoppingRule, {"grace_period": 2}),
    },
    "random, HyperBand": {"scheduler": (HyperBandScheduler, {"max_t": UNITS})},
    "BOHB": {"searcher": TuneBOHB, "scheduler": (HyperBandForBOHB, {"max_t": UNITS})},
}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")


def service(parallel: int, **parts: Any) -> Service:
    """One whose drivers each make the strategy ready anew."""
    plan, ranges = run_all(12, UNITS), {"eta": ContinuousParameter(0, 1)}
    strategy = RayTuneStrategy(**parts)
    made: list[Prepared] = []

    def searcher() -> Any:
        made.append(strategy.prepare(Task(plan=plan, ranges=ranges, metric=METRIC, mode="max", seed=3)))
        return made[-1].searcher

    def scheduler(plan: Plan) -> Any:
        return made[-1].scheduler

    options = {"in_order": strategy.depends_on_timing, "untuned": False}
    return Service(plan=plan, parallel=parallel, scheduler=scheduler, searcher=searcher, options=options)


@contextmanager
def said_by(name: str) -> Iterator[list[str]]:
    """The warnings of a logger meanwhile."""
    handler, said = logging.Handler(logging.WARNING), []
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(name).addHandler(handler)
    try:
        yield said
    finally:
        logging.getLogger(name).removeHandler(handler)


@pytest.mark.parametrize("name", PARTS)
@settings(max_examples=examples(12), deadline=None)
@given(parallel=st.integers(1, 4), dies_at=st.lists(st.integers(1, 40), min_size=1, max_size=2))
def test_what_was_decided_stays(name: str, parallel: int, dies_at: list[int]) -> None:
    broken = service(parallel, **PARTS[name])
    before: dict[str, Any] = {}
    ended: dict[str, Any] = {}
    for event in dies_at:
        if broken.drive(dies_at=event) is not None:
            return
        before = {key: (row.hyperparameters, row.status, row.resource) for key, row in broken.rows.trials.items()}
        ended = {key: row for key, row in before.items() if row[1] in ("Completed", "Stopped", "Failed", "Diverged")}
    with said_by("hpo.search.recall") as said:
        controller = broken.drive()
    assert not said, "it decides as it did"
    assert controller is not None
    assert not controller.search_failure
    for key, row in ended.items():
        after = broken.rows.trials[key]
        assert (after.hyperparameters, after.status, after.resource) == row
    assert all(broken.rows.trials[key].hyperparameters == row[0] for key, row in before.items())


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("dies_at", [5, 14, 30])
def test_one_after_another_it_is_as_if_nobody_had_died(name: str, dies_at: int) -> None:
    whole, broken = service(1, **PARTS[name]), service(1, **PARTS[name])
    expected = whole.drive()
    broken.drive(dies_at=dies_at)
    assert answer(broken, broken.drive()) == answer(whole, expected)
