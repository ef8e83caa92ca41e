"""What a trainer says of its hyperparameters: which are worth tuning, and which may take effect late."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunable:
    """Bounds of a hyperparameter within which every value trains, and the good ones lie as a rule.

    Args:
        why: these bounds, in a few words.
        least: the least value.
        most: the greatest value.
        whole: whether it takes whole numbers alone.
        scale: where to search most, in the words of `hpo.ContinuousParameter`.
        values: the values to choose among, in place of bounds.
    """

    why: str
    least: float = 0.0
    most: float = 0.0
    whole: bool = False
    scale: Literal["Linear", "Logarithmic", "ReverseLogarithmic"] = "Linear"
    values: tuple[Any, ...] = ()


@runtime_checkable
class Tunes(Protocol):
    """A trainer that says which hyperparameters are worth tuning."""

    @property
    def usual_units(self) -> int | None:
        """Units that a trial usually trains, where nothing says so; None if that depends on the training."""

    def tunable(self, ranged: Collection[str]) -> Mapping[str, Tunable]:
        """Hyperparameters worth tuning, under the names that its user has for them.

        Args:
            ranged: those that have ranges already, which are left out under all their names.
        """


@runtime_checkable
class TakesEffect(Protocol):
    """A trainer that says which hyperparameters may take effect later than from its first unit on."""

    def late_obstacle(self, name: str) -> str:
        """Why a hyperparameter takes effect from the first unit on, whatever a job says; empty if it may do so later.

        Args:
            name: of one that goes to the trainer, be it the trainer's own or its user's.
        """


def late_obstacle(trainer: object, name: str) -> str:
    """The same of any trainer: of one that says nothing, no hyperparameter may.

    A trial would go on from a checkpoint that was trained with another's values, and nothing would tell.
    """
    if isinstance(trainer, TakesEffect):
        return trainer.late_obstacle(name)
    kind = type(trainer).__name__
    return f"{kind} does not say, by a method late_obstacle(name), that it may take effect so late"
