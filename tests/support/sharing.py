"""Drivers that share a cluster: each has gangs that it always wants and that have nothing to serve.

As a program, `python -m tests.support.sharing SECONDS`: one whose gangs leave no room for those of another, which has
the higher priority and comes later; says in JSON what they were told.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import ray
from ray.train import ScalingConfig

from tests.support.assignments import segment
from trainers.cluster.session import Cluster
from trainers.gangs.messages import Assignment, GangUp, Report, Segment
from trainers.gangs.program import WorkerContext
from trainers.gangs.ray_gangs import RayGangs
from trainers.gangs.sharing import fair_share as shares

WAIT_SECONDS = 600.0
"""Until a test gives up; it says what it waited for."""


class Waits:
    """A program whose assignments take as many tenths of a second as they have units."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        return {}

    def train(self, assignment: Assignment, on_report: Any, halted: Any = None) -> Segment:
        time.sleep(0.1 * (assignment.stop - assignment.start))
        return segment(Report(step=assignment.stop, metrics={}), first_step_at=time.time())

    def close(self) -> None:
        pass


class Sharer:
    """A driver's loop around its gangs."""

    def __init__(self, name: str, wants: Mapping[int, int], *, cpus: int, priority: int = 1) -> None:
        self.wants = wants
        self.up: set[str] = set()
        self.told: list[str] = []
        self.gangs = RayGangs(
            name,
            lambda workers: Waits(),
            ScalingConfig(num_workers=1, resources_per_worker={"CPU": cpus}),
            notify=self.told.append,
            priority=priority,
            eager=True,
            on=Cluster(private=False),
        )

    def step(self) -> None:
        """Goes round the loop once."""
        self.up -= set(self.gangs.give_back())
        self.up -= set(self.gangs.want(self.wants, None))
        self.up |= {event.gang for event in self.gangs.events(0.1) if isinstance(event, GangUp)}


def until(what: str, done: Callable[[], bool], *jobs: Sharer, seconds: float = WAIT_SECONDS) -> None:
    """Drives jobs until something has happened."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"waited {seconds:g} s until {what}: {[(job.up, job.told) for job in jobs]}"
        for job in jobs:
            job.step()


def main(seconds: float) -> None:
    """Two jobs with gangs of two workers of 3 CPUs, on the cluster that `RAY_ADDRESS` names."""
    shares.TURN_SECONDS = 5.0
    ray.init(log_to_driver=False)
    low = Sharer("low", {2: 1}, cpus=3)
    high = None
    try:
        until("the first job has a gang", lambda: bool(low.up), low, seconds=seconds)
        high = Sharer("high", {2: 1}, cpus=3, priority=5)
        until("the second job has its turn", lambda: bool(high.up), low, high, seconds=seconds)
        until("the first one waits", lambda: len(low.told) > 1, low, high, seconds=seconds)
        json.dump({"low": low.told, "high": high.told, "up": [len(low.up), len(high.up)]}, sys.stdout)
    finally:
        for job in (low, high):
            if job is not None:
                job.gangs.close()


if __name__ == "__main__":
    main(float(sys.argv[1]))
