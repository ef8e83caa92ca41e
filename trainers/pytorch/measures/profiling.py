"""Choice of the trials and the steps that are profiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from trainers.checking import is_whole
from trainers.checkpoint import trial_of
from trainers.errors import ConfigurationError
from trainers.gangs import Assignment

STEPS = (10, 20)
"""The steps between which a trial is profiled if nothing else is said."""

Profiled = bool | int | str | Sequence[int | str]
"""Trials to profile: all, or some by number or name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiling:
    """Which trials are profiled, and between which steps of their first assignment.

    Args:
        trials: their numbers and names; None profiles all.
        after: steps before the profile, in which a trial warms up.
        until: the last step of it.
    """

    trials: tuple[int | str, ...] | None
    after: int
    until: int

    @classmethod
    def of(cls, profile: Profiled, steps: Sequence[int]) -> Self | None:
        """What a trainer's arguments ask for; None where no trial is profiled.

        Raises:
            ConfigurationError: a value is wrong.
        """
        if (
            isinstance(steps, str)
            or not isinstance(steps, Sequence)
            or len(steps) != 2
            or not all(is_whole(step, 0) for step in steps)
            or steps[0] >= steps[1]
        ):
            raise ConfigurationError(
                f"profile_steps is {steps!r}; give two numbers, such as {STEPS}: the profile begins after the first of "
                "these steps and ends with the second"
            )
        if profile is False:
            return None
        return cls(trials=None if profile is True else _trials(profile), after=int(steps[0]), until=int(steps[1]))

    def covers(self, assignment: Assignment) -> bool:
        """Whether an assignment is the first of a trial that is profiled."""
        trial = assignment.trial_id
        if assignment.checkpoint is not None and trial_of(assignment.checkpoint) == trial:
            return False
        number = trial.rpartition("-")[2]
        return self.trials is None or trial in self.trials or (number.isdecimal() and int(number) in self.trials)


def _trials(profile: Any) -> tuple[int | str, ...]:
    listed = [profile] if isinstance(profile, int | str) else profile
    if (
        not isinstance(listed, Sequence)
        or not listed
        or not all((isinstance(one, str) and one) or is_whole(one, 0) for one in listed)
    ):
        raise ConfigurationError(
            f"profile is {profile!r}; give True for every trial, or trials by number or name, such as 7 or "
            "['churn-1-007']"
        )
    return tuple(one if isinstance(one, str) else int(one) for one in listed)
