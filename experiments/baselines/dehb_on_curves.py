"""DEHB on recorded curves, asked and told as its users do, by simulated workers on one clock."""

from __future__ import annotations

import heapq
import itertools
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from dehb import DEHB
from loguru import logger
from numpy.typing import NDArray

from experiments.baselines.on_curves import Seen
from experiments.shared.recorded_tasks import RecordedTask

WORST = sys.float_info.max
"""The fitness of a training that diverged; infinity is DEHB's own word for one that has none yet."""


def simulate(task: RecordedTask, *, seed: int, workers: int, seconds: float) -> Seen:
    """A search of one task, until a time on the simulated clock.

    Each worker asks for a job as soon as it is free: a configuration and the units to which it is trained. A
    configuration that is promoted goes on where it was. A new one becomes the nearest recorded configuration that none
    was before, and DEHB is told of that one, as our own searches are. Units on the way count as seen by the user;
    DEHB itself takes only the last.

    Args:
        task: what is searched; more is better.
        seed: of the search.
        workers: that train at once.
        seconds: when it ends.
    """
    with _search(task, seed) as search:
        return _run(task, search, workers, seconds)


@contextmanager
def _search(task: RecordedTask, seed: int) -> Iterator[DEHB]:
    """DEHB with its defaults, on the unit cube; its state and its log are thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        # Workers here are simulated, so it starts no Dask cluster, which more than one would have it do.
        search = DEHB(
            dimensions=len(task.ranges),
            min_fidelity=1,
            max_fidelity=task.curves.units,
            eta=3,
            seed=seed,
            n_workers=1,
            output_path=folder,
            save_freq="end",
        )
        # Each search adds a file to the log of the process.
        logger.remove()
        yield search


def _run(task: RecordedTask, search: DEHB, workers: int, seconds: float) -> Seen:
    seen, order, curves = Seen(), itertools.count(), task.curves
    rows: dict[int, int] = {}
    """The curve of each configuration, by DEHB's number of it."""
    trained: dict[int, int] = {}
    """The units that each curve was trained."""
    events: list[tuple[float, int, dict[str, Any], int]] = []
    """When a unit of a job ends, the job, and the unit."""

    def begin(now: float) -> None:
        job = search.ask()
        number = int(job["config_id"])
        if number not in rows:
            rows[number] = curves.nearest(decoded(task, job["config"]), rows.values())
        row = rows[number]
        job["config"] = encoded(task, curves.configurations[row])
        go_on(now, job, trained.get(row, 0))

    def go_on(now: float, job: dict[str, Any], units: int) -> None:
        """Trains a unit after so many; takes no time where the job asks for no more than was trained already."""
        row, unit = rows[int(job["config_id"])], min(units + 1, round(job["fidelity"]))
        took = curves.seconds[row, unit] - curves.seconds[row, min(units, unit)]
        heapq.heappush(events, (now + took, next(order), job, unit))

    for _ in range(workers):
        begin(0.0)
    while events[0][0] <= seconds:
        now, _, job, unit = heapq.heappop(events)
        row, fitness = rows[int(job["config_id"])], WORST
        if unit < curves.diverged_at[row]:
            value = float(curves.values[row, unit - 1])
            trained[row] = max(unit, trained.get(row, 0))
            seen.add(now, value)
            if unit < round(job["fidelity"]):
                go_on(now, job, unit)
                continue
            fitness = -value
        search.tell(job, {"fitness": fitness, "cost": float(job["fidelity"])})
        begin(now)
    return seen


def decoded(task: RecordedTask, place: NDArray[np.float64]) -> dict[str, Any]:
    """A configuration from its place in the unit cube."""
    return {name: bounds.at(float(at)) for (name, bounds), at in zip(task.ranges.items(), place, strict=True)}


def encoded(task: RecordedTask, configuration: dict[str, Any]) -> NDArray[np.float64]:
    """The place of a configuration in the unit cube."""
    return np.array([bounds.position(configuration[name]) for name, bounds in task.ranges.items()], dtype=float)
