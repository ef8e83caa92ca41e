"""On real gangs: populations and repeats give one answer per seed, and searchers of others search to the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from optuna.samplers import CmaEsSampler, GPSampler, TPESampler
from ray.tune.schedulers import (
    ASHAScheduler,
    AsyncHyperBandScheduler,
    HyperBandForBOHB,
    HyperBandScheduler,
    MedianStoppingRule,
    PopulationBasedTraining,
)
from ray.tune.schedulers.pb2 import PB2
from ray.tune.search.bohb import TuneBOHB
from ray.tune.search.hyperopt import HyperOptSearch
from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import search_space
from hpo.strategies.hyperband import HyperbandStrategy
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.repeats import mean
from hpo.strategies.scheduler import RESOURCE
from tests.support.hpo.jobs.same_answer import GANGS, METRIC, PLAN, RANGES, Watched, answer, gangs, of, run  # noqa: F401  # Fixtures.

THEIRS: dict[str, dict[str, Any]] = {
    "OptunaSearch and ASHA": {"searcher": OptunaSearch, "scheduler": (ASHAScheduler, {"max_t": 9})},
    "HyperOptSearch": {"searcher": (HyperOptSearch, {"n_initial_points": 3})},
    "TuneBOHB and its scheduler": {"searcher": TuneBOHB, "scheduler": (HyperBandForBOHB, {"max_t": 9})},
    "median stopping": {"scheduler": (MedianStoppingRule, {"grace_period": 2, "min_samples_required": 2})},
    "the stock HyperBand": {"scheduler": (HyperBandScheduler, {"max_t": 9})},
    "GPSampler": {"searcher": (GPSampler, {"n_startup_trials": 3})},
    "TPESampler": {"searcher": (TPESampler, {"n_startup_trials": 3})},
    "CmaEsSampler": {"searcher": (CmaEsSampler, {"n_startup_trials": 2})},
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", THEIRS)
def test_searchers_and_schedulers_of_others_search_to_the_end(name: str, gangs: Watched, tmp_path: Path) -> None:
    found = run(gangs, tmp_path, GANGS, **of(RayTuneStrategy(**THEIRS[name]), 9))
    assert len(gangs.used) >= GANGS
    assert not found.stopped
    assert len(found.runs) == 9
    assert all(made.trial.is_finished() and not made.failure for made in found.runs.values())
    assert max(made.resource for made in found.runs.values()) == 9
    assert (found.trained < 9 * 9) == ("scheduler" in THEIRS[name])


FORKING = {"perturbation_interval": 2}
POPULATIONS: dict[str, RayTuneStrategy] = {
    "PBT": RayTuneStrategy(scheduler=(PopulationBasedTraining, FORKING)),
    "PB2": RayTuneStrategy(scheduler=(PB2, FORKING)),
}


@pytest.mark.fault
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:scipy.optimize:DeprecationWarning")
@pytest.mark.parametrize("name", POPULATIONS)
def test_a_population_forks_alike_on_several_gangs_and_with_a_worker_killed(
    name: str, gangs: Watched, tmp_path: Path
) -> None:
    """Each goes on from the checkpoint of the same trial, with the same hyperparameters, to the same model."""
    one, two = (
        run(gangs, tmp_path / f"{parallel}", parallel, kill_at=kill_at, **of(POPULATIONS[name], 4))
        for parallel, kill_at in ((1, None), (GANGS, {7}))
    )
    assert gangs.killed == [7]
    assert sum(made.origin is not None for made in one.runs.values()) == 4  # One of four, at rounds 2, 4, 6 and 8.
    told = [[(made.id, made.origin, made.hyperparameters) for made in each.runs.values()] for each in (one, two)]
    assert told[0] == told[1]
    assert answer(two) == answer(one)


@pytest.mark.fault
def test_repeats_of_a_configuration_are_compared_by_their_mean_alike_with_a_worker_killed(
    gangs: Watched, tmp_path: Path
) -> None:
    repeats = of(HyperbandStrategy(max_resource=9, min_resource=1, suggestions="random"), 12, repeats=3)
    one, two = (
        run(gangs, tmp_path / f"{parallel}", parallel, kill_at=kill_at, **repeats)
        for parallel, kill_at in ((1, None), (GANGS, {5}))
    )
    assert gangs.killed == [5]
    assert answer(two) == answer(one)
    runs = list(two.runs.values())
    groups = [runs[start : start + 3] for start in range(0, 12, 3)]
    assert all(len({made.resource for made in group}) == 1 < len({made.value for made in group}) for group in groups)
    to_the_end = [group for group in groups if group[0].resource == 9]
    best = two.best()
    assert best in max(to_the_end, key=lambda group: mean(made.value for made in group))


def test_a_stock_scheduler_and_searcher_of_ray_tune_run_unchanged(gangs: Watched, tmp_path: Path) -> None:
    searcher = OptunaSearch(metric=METRIC, mode="max", seed=7)
    searcher.set_search_properties(METRIC, "max", search_space(RANGES))
    scheduler = AsyncHyperBandScheduler(time_attr=RESOURCE, metric=METRIC, mode="max", max_t=30, reduction_factor=3)
    controller = run(gangs, tmp_path, GANGS, searcher=searcher, scheduler=scheduler)
    assert len(controller.runs) == 30
    assert all(run.trial.is_finished() and not run.failure for run in controller.runs.values())
    assert controller.trained < PLAN.full_resource
    best = controller.best()
    assert best is not None
    assert best.value > 0.6
