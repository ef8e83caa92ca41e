"""On real gangs: one seed gives the same trials, rungs, models and winner, whatever runs at once or is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig
from ray.tune.schedulers import AsyncHyperBandScheduler
from ray.tune.search.optuna import OptunaSearch

from experiments.stopping.kept_gangs import KeptGangs
from hpo import ContinuousParameter, IntegerParameter
from hpo.ranges import decode, search_space
from hpo.search.controller import Controller
from hpo.strategies.hyperband import HyperbandStrategy, lay_out
from hpo.strategies.random_strategy import at_random
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.strategy import Task
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


pytestmark = pytest.mark.ray


class Watched(KeptGangs):
    """Gangs that stay up between searches; kills a worker at chosen assignments."""

    def __init__(self, gangs: RayGangs) -> None:
        super().__init__(gangs)
        self.kill_at: set[int] = set()
        self.killed: list[int] = []
        self.assigned = 0
        self.used: set[str] = set()

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
        while len(kept._up) < GANGS:
            started.want({WORKERS: GANGS}, None)
            kept.events(0.5)
        kept.close()
        yield kept
    finally:
        started.close()


def run(gangs: Watched, folder: Path, parallel: int, kill_at: set[int] | None = None, **parts: Any) -> Controller:
    gangs.kill_at, gangs.killed, gangs.assigned, gangs.used = kill_at or set(), [], 0, set()
    plan = parts.get("plan", PLAN)
    task = Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=1729, parallel=parallel)
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
        ),
        searcher=parts.get("searcher", strategy.searcher),
        scheduler=parts.get("scheduler", strategy.scheduler),
        decode=lambda suggested: decode(RANGES, suggested),
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
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
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
