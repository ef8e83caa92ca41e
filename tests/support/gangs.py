"""Gangs of XGBoost workers that tests share, and what they serve."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.train import ScalingConfig

from trainers import Channel, XGBoostTrainer
from trainers.gangs.messages import Assignment, Event, GangUp, Served
from trainers.gangs.program import Program
from trainers.gangs.ray_gangs import RayGangs

WORKERS = 2


STATIC = {
    "objective": "binary:logistic",
    "eval_metric": "auc",
    "eta": 0.3,
    "subsample": 0.7,
    "colsample_bytree": 0.6,
    "colsample_bylevel": 0.5,
}


def rows(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """A table with the target first, learnable, with noise."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 8)).astype("float32")
    target = (features[:, 0] + features[:, 1] * features[:, 2] + random.normal(size=count) > 0).astype("float32")
    return np.column_stack([target, features])


TRAIN, VALIDATION = rows(3000), rows(600, seed=1)


CHANNELS = {"train": TRAIN, "validation": VALIDATION}


def boosting(channels: Mapping[str, Any]) -> Callable[[int], Program]:
    """Return a function that makes XGBoost programs."""

    def make(workers: int) -> Program:
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters=STATIC)
        return trainer.program({name: Channel.of(rows, name=name).place(workers) for name, rows in channels.items()})

    return make


class Pool:
    """Gangs, and a wait with a deadline for what they say."""

    def __init__(
        self,
        name: str,
        workers: int = WORKERS,
        cpus: int = 1,
        program: Callable[[int], Program] | None = None,
        scaling: ScalingConfig | None = None,
        **options: Any,
    ) -> None:
        scaling = scaling or ScalingConfig(num_workers=workers, resources_per_worker={"CPU": cpus})
        self.workers = workers
        self.gangs = RayGangs(name, program or boosting(CHANNELS), scaling, **options)
        self.up: dict[str, GangUp] = {}
        self.log: list[Event] = []

    def until(self, done: Callable[[Event], bool], want: int = 1, seconds: float = 180.0) -> Event:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.gangs.want({self.workers: want}, None)
            news = self.gangs.events(0.5)
            self.log += news
            self.up |= {event.gang: event for event in news if isinstance(event, GangUp)}
            for event in news:
                if done(event):
                    return event
        raise AssertionError(f"waited {seconds} s; heard {self.log[-5:]}")

    def start(self, count: int) -> list[str]:
        while len(self.up) < count:
            self.until(lambda event: isinstance(event, GangUp), want=count)
        return list(self.up)

    def serve(self, gang: str, assignment: Assignment) -> Served:
        self.gangs.assign(gang, assignment)
        served = self.until(lambda event: isinstance(event, Served), want=len(self.up))
        assert isinstance(served, Served)
        return served


def segments(folder: Path, rungs: tuple[int, ...], trial: str = "a", **hyperparameters: Any) -> list[Assignment]:
    """A trial's assignments from rung to rung."""
    path = [str(folder / f"{rung:06d}") for rung in rungs]
    return [
        Assignment(
            trial_id=trial,
            hyperparameters={**STATIC, **hyperparameters},
            seed=11,
            start=start,
            stop=stop,
            checkpoint=checkpoint,
            save_to=save_to,
        )
        for start, stop, checkpoint, save_to in zip((0, *rungs), rungs, (None, *path), path, strict=False)
    ]


def held(name: str) -> tuple[set[str], set[str]]:
    """Placement groups that hold something, and the temporary folders of gangs of this name."""
    groups = {group for group, row in ray.util.placement_group_table().items() if row["state"] != "REMOVED"}
    return groups, {path.name for path in Path(tempfile.gettempdir()).glob(f"warmband-{name}-*")}


def wait_until(what: str, true: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds} s until {what}"
        time.sleep(0.05)


def is_ray_worker(pid: int) -> bool:
    try:
        return b"RayTrainWorker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
