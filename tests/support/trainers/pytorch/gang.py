"""A Ray gang with parameter servers, and a slow training function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ray.train import ScalingConfig

from tests.support.networks import assignment, data, train_adam
from trainers import Channel, ParameterServerTrainer
from trainers.gangs.messages import Assignment, Event, GangUp, Segment, Served
from trainers.gangs.ray_gangs import RayGangs

WORDS = {"mode": "sync", "num_servers": 2, "per_worker_batch_size": 8}


def train_slowly(context) -> None:
    """As `train_adam`, but each step takes `seconds`, and before the fourth it waits at a `gate` that is closed."""
    step, gate, taken = context.step, context.hyperparameters.get("gate"), 0

    def slowly(loss, optimizer):
        nonlocal taken
        taken += 1
        if gate and taken == 4:
            Path(f"{gate}-{context.rank}").touch()
            wait_until("the gate is open", lambda: not Path(gate).exists())
        time.sleep(context.hyperparameters.get("seconds", 0.0))
        return step(loss, optimizer)

    context.step = slowly
    train_adam(context)


def wait_until(what: str, true: Callable[[], bool], seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds} s until {what}"
        time.sleep(0.05)


class Pool:
    """One gang of two workers and their servers, and waits with a deadline for what it says."""

    def __init__(self) -> None:
        trainer = ParameterServerTrainer(train_slowly, scaling=ScalingConfig(num_workers=2))
        placed = {"train": Channel.of(data(96), name="train").place(2)}
        self.gangs = RayGangs("torch", lambda workers: trainer.program(placed), trainer.scaling)
        self.up = self.until(lambda event: isinstance(event, GangUp))

    def until(self, done: Callable[[Event], bool], seconds: float = 180.0) -> Event:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.gangs.want({2: 1}, None)
            for event in self.gangs.events(0.5):
                if isinstance(event, GangUp):
                    self.up = event
                if done(event):
                    return event
        raise AssertionError(f"waited {seconds} s")

    def serve(self, work: Assignment) -> Served:
        self.gangs.assign(self.up.gang, work)
        served = self.until(lambda event: isinstance(event, Served))
        assert isinstance(served, Served)
        return served


@pytest.fixture(scope="module")
def pool(ray_cluster: None) -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.gangs.close()


@pytest.fixture(scope="module")
def straight(pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Segment:
    """The trial's last segment where nothing died."""
    folder = tmp_path_factory.mktemp("straight")
    for work in (assignment(folder, stop=1, **WORDS), assignment(folder, start=1, stop=3, **WORDS)):
        served = pool.serve(work)
        assert served.segment, served.traceback
    return served.segment
