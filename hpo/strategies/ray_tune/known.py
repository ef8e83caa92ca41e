"""Known schedulers of Ray Tune's: where they decide, what they count, and what is wrong with them (ray 2.60.0).

Their attributes that are read here are private. `tests/job/hpo/strategies/ray_tune/test_known.py` fails when they
change.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import (
    AsyncHyperBandScheduler,
    FIFOScheduler,
    HyperBandForBOHB,
    HyperBandScheduler,
    MedianStoppingRule,
    PopulationBasedTrainingReplay,
    ResourceChangingScheduler,
    TrialScheduler,
)

from trainers.checking import is_whole
from trainers.errors import ConfigurationError

Milestones = Callable[[Trial, int], int]
"""The units at which a scheduler next decides on a trial that has trained so many."""

REFUSED: dict[type[TrialScheduler], str] = {
    PopulationBasedTrainingReplay: "changes a trial's hyperparameters on the way",
    ResourceChangingScheduler: "changes a trial's workers on the way, and a gang keeps its size",
}
"""Schedulers that do more than let trials wait and end."""


def check_served(scheduler: TrialScheduler) -> None:
    """Refuses a scheduler that asks for more than is done here.

    Raises:
        ConfigurationError: saying what it does.
    """
    for kind, why in REFUSED.items():
        if isinstance(scheduler, kind):
            raise ConfigurationError(
                f"scheduler {type(scheduler).__name__} {why}; give one that stops or pauses trials"
            )


def counts(scheduler: TrialScheduler) -> str | None:
    """The key of results by which it counts; None where it has none."""
    return getattr(scheduler, "_time_attr", None)


def mode(scheduler: TrialScheduler) -> str | None:
    """The end of the objective that it was told is the better one; None where it was told nothing."""
    return getattr(scheduler, "_mode", None)


def pauses(scheduler: TrialScheduler) -> bool:
    """Whether it decides on the trials of a bracket together, so that it has to see the next one before it does."""
    return isinstance(scheduler, HyperBandScheduler)


def holds(scheduler: TrialScheduler, resource: int) -> bool:
    """Whether a trial that has trained so many units keeps its place in a bracket until all have.

    Tune's trials do not end by themselves there. One that does would be taken out, and its place given to another:
    `_Bracket.filled` counts those that live.
    """
    return isinstance(scheduler, HyperBandScheduler) and resource >= scheduler._max_t_attr


def longest(scheduler: TrialScheduler) -> int | None:
    """The units after which it ends every trial, where it was told them; None where they are its class's default."""
    most = getattr(scheduler, "_max_t_attr", getattr(scheduler, "_max_t", None))
    usual = inspect.signature(type(scheduler)).parameters.get("max_t")
    return most if is_whole(most, 1) and usual is not None and most != usual.default else None


def milestones(scheduler: TrialScheduler, longest: int) -> Milestones:
    """Where it decides: for one that is not Ray's own, after every unit.

    Args:
        scheduler: any.
        longest: units of a trial that runs to its end.
    """
    of: Any = scheduler
    kind = type(scheduler)
    if kind is FIFOScheduler:
        return lambda trial, resource: longest
    if kind is AsyncHyperBandScheduler:
        rungs = sorted({math.ceil(rung) for bracket in of._brackets for rung, _ in bracket._rungs} | {of._max_t})
        return lambda trial, resource: next((rung for rung in rungs if rung > resource), longest)
    if kind is MedianStoppingRule:
        return lambda trial, resource: max(resource + 1, math.ceil(of._grace_period))
    if kind in (HyperBandScheduler, HyperBandForBOHB):
        return lambda trial, resource: max(resource + 1, math.ceil(of._trial_info[trial][0]._cumul_r))
    return lambda trial, resource: resource + 1
