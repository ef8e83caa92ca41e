"""Syne Tune on recorded curves: its schedulers, called as its tuner calls them, by simulated workers on one clock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.baselines import ASHACQR, BOHB
from syne_tune.optimizer.scheduler import SchedulerDecision, TrialScheduler

from experiments.baselines.on_curves import Seen, mirrored
from experiments.shared.recorded_tasks import RecordedTask
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange

METRIC, UNIT = "value", "unit"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""When each trial was made, for the package; no scheduler here reads it."""

Make = Callable[[dict[str, Any], int, int], TrialScheduler]
"""A scheduler from the space, the seed and the units of a whole trial."""


def conformal(space: dict[str, Any], seed: int, units: int) -> TrialScheduler:
    """ASHA with conformalized quantile regression (Salinas and others, ICML 2023)."""
    return ASHACQR(space, **_usual(seed, units))


def kernels(space: dict[str, Any], seed: int, units: int) -> TrialScheduler:
    """ASHA with kernel density estimators, Syne Tune's form of BOHB (Falkner and others, ICML 2018)."""
    return BOHB(space, **_usual(seed, units))


def simulate(task: RecordedTask, make: Make, *, seed: int, workers: int, seconds: float) -> Seen:
    """A search of one task, until a time on the simulated clock.

    Each worker asks for a trial as soon as it is free, and reports every unit. A trial that diverged is an error, as
    one that raises is. A suggestion becomes the nearest recorded configuration that none was before, and the scheduler
    is told of that one, as our own searches are. The schedulers stop trials and pause none.

    Args:
        task: what is searched; more is better.
        make: the scheduler.
        seed: of the search.
        workers: that train at once.
        seconds: when it ends.
    """
    with _seeded(seed):
        return _run(task, make, seed, workers, seconds)


def _run(task: RecordedTask, make: Make, seed: int, workers: int, seconds: float) -> Seen:
    seen, order, curves, rows = Seen(), itertools.count(), task.curves, list[int]()
    scheduler = make({name: domain(bounds) for name, bounds in task.ranges.items()}, seed, curves.units)
    events: list[tuple[float, int, Trial, int]] = []
    """When a unit of a trial ends, the trial, and the unit."""

    def begin(now: float) -> None:
        suggestion = scheduler.suggest()
        assert suggestion is not None, "ranges of numbers are never exhausted"
        assert suggestion.config is not None, "nothing is paused, so nothing is resumed"
        suggested = {name: mirrored(bounds, suggestion.config[name]) for name, bounds in task.ranges.items()}
        row = curves.nearest(suggested, rows)
        rows.append(row)
        told = {name: mirrored(bounds, curves.configurations[row][name]) for name, bounds in task.ranges.items()}
        trial = Trial(trial_id=len(rows) - 1, config=told, creation_time=BEGINNING)
        scheduler.on_trial_add(trial)
        heapq.heappush(events, (now + curves.seconds[row, 1], next(order), trial, 1))

    for _ in range(workers):
        begin(0.0)
    while events[0][0] <= seconds:
        now, _, trial, unit = heapq.heappop(events)
        row = rows[trial.trial_id]
        if unit >= curves.diverged_at[row]:
            scheduler.on_trial_error(trial)
            begin(now)
            continue
        value = float(curves.values[row, unit - 1])
        seen.add(now, value)
        result = {METRIC: value, UNIT: unit}
        decision = scheduler.on_trial_result(trial, result)
        if unit == curves.units:
            scheduler.on_trial_complete(trial, result)
        elif decision == SchedulerDecision.STOP:
            scheduler.on_trial_remove(trial)
        else:
            took = curves.seconds[row, unit + 1] - curves.seconds[row, unit]
            heapq.heappush(events, (now + took, next(order), trial, unit + 1))
            continue
        begin(now)
    return seen


def domain(bounds: ParameterRange) -> Any:
    """A range in Syne Tune's form; near 1, the distance to 1 is what is searched."""
    if isinstance(bounds, CategoricalParameter):
        return choice(list(bounds.values))
    low, high, log = bounds.min_value, bounds.max_value, bounds.resolved_scaling == "Logarithmic"
    if isinstance(bounds, IntegerParameter):
        return (lograndint if log else randint)(int(low), int(high))
    if bounds.resolved_scaling == "ReverseLogarithmic":
        return loguniform(1 - high, 1 - low)
    return (loguniform if log else uniform)(low, high)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """NumPy's global random state for the block: schedulers draw from it beside the generators that they are given."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _usual(seed: int, units: int) -> dict[str, Any]:
    """What its examples give; grace period 1, reduction factor 3 and one bracket are its defaults."""
    return {"metric": METRIC, "time_attr": UNIT, "max_t": units, "do_minimize": False, "random_seed": seed}
