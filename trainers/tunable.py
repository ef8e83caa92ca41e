"""Tunable hyperparameters: what a trainer says of those worth tuning, for who chooses their ranges."""

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
