"""Fork: the decision that a trial goes on from another's checkpoint, and what a trial keeps of its ancestors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The beginning of a trial that began from another's checkpoint.

    Args:
        parent: id of the other trial.
        resource: units in that checkpoint; the trial's own reports begin behind them.
        replaces: id of the trial that ended for this one; empty where it took nobody's place.
    """

    parent: str
    resource: int
    replaces: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of what an ancestor trained of a trial's model: how to train that again where its checkpoint is gone.

    Args:
        until: units at which the part ends.
        config: hyperparameters of it, static and tuned values together.
        seed: of the ancestor.
    """

    until: int
    config: dict[str, Any]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """The decision of a scheduler: a trial ends where it stands, and another goes on in its place.

    Args:
        trial_id: the trial that ends.
        parent: id of the trial from whose checkpoint the other begins.
        resource: units in that checkpoint.
        config: hyperparameters of the other, static and tuned values together.
    """

    trial_id: str
    parent: str
    resource: int
    config: dict[str, Any]
