"""A program's own step counter, and the units of resource that its steps are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from trainers.checking import did_you_mean, is_number
from trainers.errors import ConfigurationError

STEP = "step"
"""The group of a regular expression, and the key of a JSON object, that has a step if nothing else is said."""
KEYS = ("first", "every", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounter:
    """A program's step counter.

    Args:
        first: the step of the first unit; None if the first step that comes tells: 0, or else `every`.
        every: steps of a unit; None if steps are whole numbers that rise by one.
        key: the key of JSON lines, and the column of CSV files, that has the step.
    """

    first: float | None = None
    every: float | None = None
    key: str = STEP

    @classmethod
    def of(cls, given: object) -> Self:
        """Return the counter that a user describes, such as `{"first": 0, "every": 10}`; None describes the usual one.

        Raises:
            ConfigurationError: a key or a value is wrong.
        """
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise ConfigurationError(f"step is {given!r}; give a mapping, such as {{'first': 0, 'every': 10}}")
        for key in given:
            if key not in KEYS:
                raise ConfigurationError(
                    f"step has the key {key!r}; give 'first', 'every' or 'key'{did_you_mean(key, KEYS)}"
                )
        first, every, key = given.get("first"), given.get("every"), given.get("key", STEP)
        if first is not None and not is_number(first):
            raise ConfigurationError(f"step has first: {first!r}; give the step of the first unit, such as 0")
        if every is not None and (not is_number(every) or every <= 0):
            raise ConfigurationError(
                f"step has every: {every!r}; give the steps of a unit, a number above 0, such as 10"
            )
        if not isinstance(key, str) or not key:
            raise ConfigurationError(
                f"step has key: {key!r}; give the name of a JSON key or of a column, such as 'step'"
            )
        return cls(first=first, every=every, key=key)

    @property
    def whole(self) -> bool:
        """Whether steps have to be whole numbers: nothing says how many of them are a unit."""
        return self.first is None and self.every is None

    @property
    def stride(self) -> float:
        """Steps of a unit."""
        return 1.0 if self.every is None else self.every

    def begun(self, step: float) -> float:
        """Return the step of the first unit, where a trial's first step is this one."""
        if self.first is not None:
            return self.first
        return 0.0 if step < self.stride / 2 else self.stride

    def unit(self, step: float, first: float) -> int:
        """Return the unit of a step, counted from 1; below 1 for a step before the first unit's.

        Args:
            step: as the program gives it.
            first: the step of the first unit, as `begun` returns it.
        """
        return math.floor((step - first) / self.stride + 0.5) + 1

    def units_of_length(self, length: float) -> int:
        """Return the units that a program reports whose last step is `length`, such as its `max_steps`.

        With steps 0, 1, 2 and so on it is the number of steps, as of `range(length)`.
        """
        first = self.stride if self.first is None else self.first
        if self.stride == 1 and first in (0, 1):
            return int(length)
        return max(0, math.floor((length - first) / self.stride + 1e-6) + 1)


def described(first: float, every: float) -> str:
    """Return what a job file says for such a counter, as in "step: {first: 0, every: 10}"."""
    return f"step: {{first: {first:.6g}, every: {every:.6g}}}"
