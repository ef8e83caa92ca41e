"""Conditions: which hyperparameters there are, given the values of those that they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.kinds import ParameterRange
from hpo.ranges.values import Scalar, either
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError


def present(ranges: Mapping[str, ParameterRange], values: Mapping[str, object]) -> list[str]:
    """The hyperparameters that there are: whose conditions are met by others that are there themselves.

    Args:
        ranges: of all hyperparameters.
        values: by name; those of hyperparameters that are not there do not count, and may be left out.

    Returns:
        Names, in the order of the ranges.
    """
    if not any(bounds.when for bounds in ranges.values()):
        return [*ranges]  # Searches ask for thousands of configurations at once.
    known: dict[str, bool] = {}

    def there(name: str) -> bool:
        if name not in known:
            known[name] = all(map(there, ranges[name].when)) and is_met(ranges, name, values)
        return known[name]

    return [name for name in ranges if there(name)]


def is_met(ranges: Mapping[str, ParameterRange], name: str, values: Mapping[str, object]) -> bool:
    """Whether a hyperparameter's own condition is met, by values of others that are there."""
    return all(
        other in values and among(ranges[other], values[other], accepted)
        for other, accepted in ranges[name].when.items()
    )


def among(bounds: ParameterRange, value: object, accepted: Sequence[Scalar]) -> bool:
    """Whether a value of a range is one of some; a category only if it is of the same type."""
    return bounds.is_valid(value) and bounds.position(value) in map(bounds.position, accepted)


def parents_first(ranges: Mapping[str, ParameterRange]) -> list[str]:
    """The names in their order, but each behind those that its condition is about."""
    ordered: dict[str, None] = {}

    def visit(name: str) -> None:
        for other in sorted(ranges[name].when):
            visit(other)
        ordered[name] = None

    for name in sorted(ranges):
        visit(name)
    return [*ordered]


def required(ranges: Mapping[str, ParameterRange], name: str) -> dict[str, list[Scalar]]:
    """The values that others must have for a hyperparameter to be there, through all the conditions behind its own.

    A list is empty where two conditions contradict each other.
    """
    needed: dict[str, list[Scalar]] = {}
    for other, accepted in ranges[name].when.items():
        for ancestor, values in {**required(ranges, other), other: list(accepted)}.items():
            needed[ancestor] = [
                value for value in needed.get(ancestor, values) if among(ranges[ancestor], value, values)
            ]
    return needed


def check_conditions(ranges: Mapping[str, ParameterRange]) -> None:
    """Refuses conditions that are about no tuned hyperparameter, about values that it has not, or never met.

    Raises:
        ConfigurationError: naming the range, its condition and what to give.
    """
    for name, bounds in ranges.items():
        for other, accepted in bounds.when.items():
            about = f"hyperparameter_ranges[{name!r}]: when is {bounds.when!r}"
            if other not in ranges:
                raise ConfigurationError(
                    f"{about}, and {other!r} is not tuned; give the name of another range"
                    f"{did_you_mean(other, [each for each in ranges if each != name])}"
                )
            parent = ranges[other]
            names = [str(each) for each in parent.values] if isinstance(parent, CategoricalParameter) else []
            if parent.size is None:
                raise ConfigurationError(
                    f"{about}, and {other!r} may have any number between two; give a condition on a categorical range, "
                    "an integer range or one with a step"
                )
            for value in accepted:
                if not parent.is_valid(value):
                    raise ConfigurationError(
                        f"{about}, and {other!r} is never {value!r}; give values of {parent!r}"
                        f"{did_you_mean(value, names)}"
                    )
    for name in ranges:
        _check_circle(ranges, (name,))
    for name in ranges:
        never = [other for other, values in required(ranges, name).items() if not values]
        if never:
            raise ConfigurationError(
                f"hyperparameter_ranges[{name!r}]: when is {ranges[name].when!r}, which is never met, since another of "
                f"its conditions wants another {either(never)}; give values that go together"
            )


def _check_circle(ranges: Mapping[str, ParameterRange], path: tuple[str, ...]) -> None:
    for other in ranges[path[-1]].when:
        if other == path[0]:
            raise ConfigurationError(
                f"hyperparameter_ranges[{other!r}] depends on itself: {' on '.join(map(repr, (*path, other)))}; leave "
                "one of these conditions out"
            )
        if other not in path:
            _check_circle(ranges, (*path, other))
