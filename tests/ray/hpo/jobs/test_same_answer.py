"""On real gangs: one seed gives the same trials, rungs, models and winner, whatever runs at once or is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from optuna.samplers import CmaEsSampler, GPSampler, TPESampler
from ray.train import ScalingConfig
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

from experiments.stopping.kept_gangs import KeptGangs
from hpo import ContinuousParameter, IntegerParameter
from hpo.ranges import decode, nearest, search_space
from hpo.search.controller import Controller
from hpo.strategies.asha import AshaStrategy
from hpo.strategies.hyperband import HyperbandStrategy, lay_out
from hpo.strategies.random_strategy import at_random
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.registry import prepared
from hpo.strategies.repeats import mean, repeated
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.strategy import Strategy, Task
from tests.support.boosting import CHANNELS
from tests.support.simulated import Kept, search_of
from trainers import Channel, XGBoostTrainer, storage
from trainers.gangs.messages import Assignment
from trainers.gangs.ray_gangs import RayGangs

GANGS, WORKERS = 2, 2
METRIC = "validation:auc"
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3}
RANGES = {
    "eta": ContinuousParameter(0.01, 1),
    "max_depth": IntegerParameter(1, 8),
    "colsample_bytree": ContinuousParameter(0.2, 1),
    "subsample": ContinuousParameter(0.3, 1),
}
PLAN = lay_out(30, 1, 30)


class Watched(KeptGangs):
    """Gangs that stay up between searches; kills a worker at chosen assignments."""

    def __init__(self, gangs: RayGangs) -> None:
        super().__init__(gangs)
        self.kill_at: set[int] = set()
        self.killed: list[int] = []
        self.assigned = 0
        self.used: set[str] = set()

    def all_up(self) -> None:
        """Waits for a gang that lost a worker, so that the next search has all of them from its start."""
        deadline = time.monotonic() + 180
        while len(self._up) < GANGS:
            assert time.monotonic() < deadline, f"{len(self._up)} of {GANGS} gangs are up after 180 s"
            self.want({WORKERS: GANGS}, None)
            self.events(0.5)
        self.close()

    def assign(self, gang: str, assignment: Assignment) -> None:
        super().assign(gang, assignment)
        self.used.add(gang)
        if self.assigned in self.kill_at:
            os.kill(self._up[gang].pids[self.assigned % WORKERS], signal.SIGKILL)
            self.killed.append(self.assigned)
        self.assigned += 1


@pytest.fixture(scope="module")
def gangs(ray_cluster: None) -> Iterator[Watched]:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters=STATIC)
    placed = {name: Channel.of(frame, name=name).place(WORKERS) for name, frame in CHANNELS.items()}
    started = RayGangs("same", lambda workers: trainer.program(placed), trainer.scaling, eager=True)
    kept = Watched(started)
    try:
        kept.all_up()
        yield kept
    finally:
        started.close()


def run(gangs: Watched, folder: Path, parallel: int, kill_at: set[int] | None = None, **parts: Any) -> Controller:
    folder.mkdir(exist_ok=True)
    gangs.all_up()
    gangs.kill_at, gangs.killed, gangs.assigned, gangs.used = kill_at or set(), [], 0, set()
    plan, ranges = parts.get("plan", PLAN), parts.get("ranges", RANGES)
    task = Task(plan=plan, ranges=ranges, metric=METRIC, mode="max", seed=1729, parallel=parallel)
    strategy = parts.get("prepare", at_random)(task)
    controller = Controller(
        search_of(
            plan,
            parallel=parallel,
            metric=METRIC,
            seed=1729,
            storage_path=str(folder),
            static=STATIC,
            workers=lambda hyperparameters: WORKERS,
            untuned=False,
            repeats=plan.repeats,
            within_ranges=partial(nearest, ranges),
        ),
        searcher=parts.get("searcher", strategy.searcher),
        scheduler=parts.get("scheduler", strategy.scheduler),
        decode=partial(decode, ranges),
        gangs=gangs,
        record=Kept(),
    )
    controller.run()
    return controller


def answer(controller: Controller) -> tuple[dict[str, tuple[int, float]], str, bytes]:
    """Where each trial stopped and with which value, who won, and the winner's model."""
    best = controller.best()
    assert best is not None
    assert best.checkpoint is not None
    stopped = {name: (run.resource, run.value) for name, run in controller.runs.items()}
    return stopped, best.id, storage.read(best.checkpoint)


@pytest.fixture(scope="module")
def expected(gangs: Watched, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    return answer(run(gangs, tmp_path_factory.mktemp("one"), parallel=1))


def test_one_seed_gives_one_answer(gangs: Watched, expected: tuple[Any, ...], tmp_path: Path) -> None:
    controller = run(gangs, tmp_path, GANGS)
    assert len(gangs.used) >= GANGS
    assert answer(controller) == expected


def of(strategy: Strategy, trials: int, repeats: int = 1) -> dict[str, Any]:
    """A search of a strategy, for `run`."""
    plan = repeated(strategy.plan(RANGES, trials // repeats, 9), repeats)
    return {"plan": plan, "prepare": partial(prepared, strategy)}


@pytest.mark.parametrize("suggestions", ["random", "model"])
def test_asha_promotes_on_several_gangs(suggestions: str, gangs: Watched, tmp_path: Path) -> None:
    found = run(gangs, tmp_path, GANGS, **of(AshaStrategy(max_resource=9, min_resource=1, suggestions=suggestions), 12))
    assert len(gangs.used) >= GANGS
    units = [made.resource for made in found.runs.values()]
    assert set(units) == {1, 3, 9}
    assert units.count(1) > units.count(3) >= units.count(9)
    assert not any(made.failure for made in found.runs.values())


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


@pytest.mark.fault
def test_and_with_a_worker_killed_on_the_way(gangs: Watched, expected: tuple[Any, ...], tmp_path: Path) -> None:
    controller = run(gangs, tmp_path, GANGS, kill_at={6})
    assert gangs.killed == [6]
    assert sum(run.attempts for run in controller.runs.values()) >= 1
    assert answer(controller) == expected


def test_a_model_s_suggestions_are_the_same_on_several_gangs_and_with_a_worker_killed(
    gangs: Watched, tmp_path: Path
) -> None:
    learning = HyperbandStrategy(max_resource=30, min_resource=1)
    parts = {"plan": learning.plan(RANGES, 24, None), "prepare": learning.prepare}
    one = run(gangs, tmp_path / "one", parallel=1, **parts)
    two = run(gangs, tmp_path / "two", parallel=GANGS, kill_at={25}, **parts)
    assert gangs.killed == [25]
    assert len(gangs.used) >= GANGS
    assert answer(two) == answer(one)
    tried = [[made.hyperparameters for made in controller.runs.values()] for controller in (one, two)]
    assert tried[0] == tried[1]
    drawn = at_random(Task(plan=PLAN, ranges=RANGES, metric=METRIC, mode="max", seed=1729)).searcher
    at_chance = [decode(RANGES, drawn.suggest(name)) for name in one.runs]
    same = [made == chance for made, chance in zip(tried[0], at_chance, strict=True)]
    assert all(same[:6])  # A small job: a suggestion reads trials 3 back, and a model is asked once it reads 4.
    assert not any(same[6:]), "a model suggests them"


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
