"""Length of a training: the hyperparameter that says how many units it trains, or a number of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from trainers.checking import check_whole
from trainers.parts import prefixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """The rule by which a configuration says how many units it trains.

    Args:
        names: hyperparameters that say so; the first with a value counts.
        units: units of every configuration, where no hyperparameter says so; None where nothing does.
        part: the trainer's name where a job has several; its hyperparameters have it in front.
        received: whether the training gets the hyperparameter as it is given; otherwise a tuner's units take its place.
    """

    names: tuple[str, ...] = ()
    units: int | None = None
    part: str = ""
    received: bool = False

    def of(self, hyperparameters: Mapping[str, Any]) -> int | None:
        """Return the units that a configuration asks for; None where it does not say."""
        for name in self.names:
            value = hyperparameters.get(name)
            if value is not None and (units := self.in_units(name, value)) is not None:
                return units
        return self.units

    def in_units(self, name: str, value: Any) -> int | None:
        """Return the units that a value of one of `names` means; None where it means none."""
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError):
            return None

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """Refuse values of `names` that are no length.

        Raises:
            ConfigurationError: naming the hyperparameter and its value.
        """
        for name in self.names:
            check_whole(f"hyperparameter {name!r}", hyperparameters.get(name), 1)

    def check_given(self, given: Collection[str]) -> None:
        """Refuse a hyperparameter that is named as the length and that nothing gives.

        Args:
            given: the names of static and tuned hyperparameters.

        Raises:
            ConfigurationError: naming it, and those that are given.
        """

    def remedy(self, given: Mapping[str, Any]) -> str:
        """Say what to give where nothing says how long it trains, for the end of "give ...".

        Args:
            given: static and tuned hyperparameters.
        """
        return f"{' or '.join(self.names)} in the trainer's hyperparameters"

    def of_part(self, name: str) -> Self:
        """Return the same rule for a job of several trainers, of which this one has that name."""
        return replace(self, names=tuple(prefixed(name, dict.fromkeys(self.names))), part=name)


def no_length(lengths: Iterable[Length], given: Mapping[str, Any], settings: Sequence[str] = ()) -> str:
    """Say that nothing says how long a trial trains, and what to give.

    Args:
        lengths: the rules that come to no length.
        given: static and tuned hyperparameters.
        settings: arguments of the strategy that would say it for all of them, in words.
    """
    remedies = " and ".join(length.remedy(given) for length in lengths) or "a length in the trainer's hyperparameters"
    return f"nothing says how long a trial trains: give {', or '.join([*settings, remedies])}"
