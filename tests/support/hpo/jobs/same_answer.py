"""Searches on gangs that stay up between them, whose workers are killed at chosen assignments."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from experiments.stopping.kept_gangs import KeptGangs
from hpo import ContinuousParameter, IntegerParameter
from hpo.ranges import decode, nearest
from hpo.search.controller import Controller
from hpo.strategies.hyperband import lay_out
from hpo.strategies.random_strategy import at_random
from hpo.strategies.registry import prepared
from hpo.strategies.repeats import repeated
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
    """Return the units and the value of each trial, the name of the best trial, and the bytes of its model."""
    best = controller.best()
    assert best is not None
    assert best.checkpoint is not None
    stopped = {name: (run.resource, run.value) for name, run in controller.runs.items()}
    return stopped, best.id, storage.read(best.checkpoint)


def of(strategy: Strategy, trials: int, repeats: int = 1) -> dict[str, Any]:
    """A search of a strategy, for `run`."""
    plan = repeated(strategy.plan(RANGES, trials // repeats, 9), repeats)
    return {"plan": plan, "prepare": partial(prepared, strategy)}
