"""Length of a program's trials: a hyperparameter that the program receives, or the number of its reports."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trainers.checking import MOST_WHOLE, did_you_mean, is_number, is_whole, some_of
from trainers.errors import ConfigurationError
from trainers.length import Length
from trainers.parts import of_one
from trainers.script.steps import StepCounter

LENGTHS = ("epochs", "num_epochs", "num_train_epochs", "num_boost_round")
"""Hyperparameters that set a program's length where `length` names none: a program reports once for each as a rule.

Steps and iterations are none: a program reports every so many of them, and only its user knows how many.
"""

_LIKELY = re.compile(r"(?:^|_)(?:n|nb|num|max|total|train)*(?:epoch|iter|iteration|step|round|update)s?(?:_|$)")
_UNLIKELY = re.compile(r"(?:^|_)(?:warm|eval|log|sav|val|accum|patience|per(?:_|$)|every|interval|freq|decay|start)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLength(Length):
    """The length of a program, which receives its hyperparameter as it is.

    Args:
        named: whether the trainer's `length` names the hyperparameter, so that a wrong value is an error.
        counted: the reports of a program whose hyperparameter has a value, by its step counter.
    """

    named: bool = False
    counted: Callable[[float], int] = int
    received: bool = True

    def in_units(self, name: str, value: Any) -> int | None:
        """See `Length.in_units`; a value such as -1 or "auto" is no length unless `length` names it.

        Raises:
            ConfigurationError: `length` names it.
        """
        number = _number(value)
        units = self.counted(number) if number is not None and number > 0 else 0
        # Without a step counter, a fraction of a report is none.
        if is_whole(units, 1) and (self.counted is not int or number == units):
            return units
        if not self.named:
            return None
        remedy = "a whole number of 1 or more" if self.counted is int else "a number that its step comes to"
        raise ConfigurationError(
            f"hyperparameter {name!r} is {value!r}, and the trainer's length names it; give {remedy}, or the number of "
            "reports as length"
        )

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Length.check`."""
        self.of(hyperparameters)

    def check_given(self, given: Collection[str]) -> None:
        """See `Length.check_given`."""
        if self.named and not any(name in given for name in self.names):
            own = self._own(dict.fromkeys(given))
            (name,) = self._own(dict.fromkeys(self.names))
            of = f" of trainer {self.part!r}" if self.part else ""
            there = f", which has {some_of(list(own))}" if own else ""
            raise ConfigurationError(
                f"length{of} is {name!r}, which is neither among the hyperparameters nor in the ranges{there}; give "
                f"the name of one of them, or the number of reports of a trial{did_you_mean(name, own)}"
            )

    def remedy(self, given: Mapping[str, Any]) -> str:
        """See `Length.remedy`; names the hyperparameters that may set its length, and assumes none of them."""
        likely = [name for name, value in self._own(given).items() if _may_be_length(name, value)]
        argument = f"the length of trainer {self.part!r}" if self.part else "the trainer's length"
        if not likely:
            return (
                f"{argument}, which is the number of reports of a trial, such as 10, or the name of the program's "
                "hyperparameter that sets it"
            )
        return (
            f"{argument}, which is the name of the program's hyperparameter that sets it, such as "
            f"{' or '.join(map(repr, likely[:3]))}, or the number of reports of a trial, such as 10"
        )

    def _own(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Hyperparameters by the trainer's own names."""
        return of_one(self.part, values) if self.part else dict(values)


def program_length(given: object, steps: StepCounter | None = None) -> ProgramLength:
    """Return the length of a program, as the argument `length` of its trainer says it.

    Args:
        given: the name of a hyperparameter, a number of reports, or None: one of `LENGTHS`, where there is one.
        steps: the program's step counter, if one is described: a length that is named is in its steps, and one of
            `LENGTHS` in reports.

    Raises:
        ConfigurationError: it is neither.
    """
    if given is None:
        return ProgramLength(names=LENGTHS)
    counted = int if steps is None or steps.whole else steps.units_of_length
    if isinstance(given, str) and given.strip():
        return ProgramLength(names=(given,), named=True, counted=counted)
    if is_whole(given, 1):
        return ProgramLength(units=int(given))
    raise ConfigurationError(
        f"length is {given!r}; give the name of the hyperparameter that sets the program's length, such as 'max_iters',"
        " or the number of reports of a trial, a whole number of 1 or more"
    )


def _number(value: Any) -> float | None:
    """Return a value as a number, as a program reads it; None where it is none."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return value if is_number(value) and math.isfinite(value) and abs(value) <= MOST_WHOLE else None


def _may_be_length(name: str, value: Any) -> bool:
    """Whether a hyperparameter's name and value are those of a length."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", "_", name).lower()
    number = _number(value)
    static = number is not None and number >= 1
    return bool(_LIKELY.search(plain)) and not _UNLIKELY.search(plain) and (static or not isinstance(value, str | bool))
