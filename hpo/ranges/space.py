"""The ranges of a job together: as Ray Tune's search space and back, and in the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpo.ranges.conditions import check_conditions, present
from hpo.ranges.kinds import ParameterRange
from hpo.ranges.values import Scalar
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain


def check_ranges(ranges: Mapping[str, ParameterRange]) -> None:
    """Refuses what is no range under a hyperparameter's name.

    Raises:
        ConfigurationError: a name or a range is not one.
    """
    for name, value in ranges.items():
        if not isinstance(name, str) or not name or "/" in name:
            raise ConfigurationError(
                f"hyperparameter_ranges has the name {name!r}; give a string without '/', Ray Tune's sign for nesting"
            )
        if not isinstance(value, ParameterRange):
            raise ConfigurationError(
                f"hyperparameter_ranges[{name!r}] is {value!r}; give a ContinuousParameter, an IntegerParameter, a "
                "NormalParameter or a CategoricalParameter, or put a fixed value into the trainer's hyperparameters"
            )


def search_space(ranges: Mapping[str, ParameterRange]) -> dict[str, Domain]:
    """The ranges as Ray Tune's own domains, for any of its searchers.

    What a searcher suggests from it has to go through `decode`. There are no conditions in it: `decode` leaves out what
    is not there.

    Raises:
        ConfigurationError: a name, a range or a condition is not one.
    """
    check_ranges(ranges)
    check_conditions(ranges)
    return {name: value.domain() for name, value in ranges.items()}


def encode(ranges: Mapping[str, ParameterRange], hyperparameters: Mapping[str, Scalar]) -> dict[str, Any]:
    """Hyperparameters as points of the space that `search_space` makes of their ranges: what `decode` takes back.

    One that is not there has the point in the middle.
    """
    values = {**{name: bounds.at(0.5) for name, bounds in ranges.items() if bounds.when}, **hyperparameters}
    return {name: bounds.encode(values[name]) for name, bounds in ranges.items()}


def decode(
    ranges: Mapping[str, ParameterRange], suggested: Mapping[str, Any], given: Mapping[str, Scalar] | None = None
) -> dict[str, Scalar]:
    """Hyperparameters from what a searcher suggested: within their ranges, of their types, and those that there are.

    Args:
        ranges: of all hyperparameters.
        suggested: a point for each; for those that are not there, with it or without.
        given: values that go over the suggested ones, and decide what there is.

    Raises:
        ConfigurationError: the suggestion is not from the space that `search_space` makes of these ranges.
    """
    values: dict[str, Scalar] = {}
    for name, bounds in ranges.items():
        if name in suggested:
            try:
                values[name] = bounds.decode(suggested[name])
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"{name}: {error}; give the searcher the space that search_space() makes of the ranges"
                ) from error
    values |= given or {}
    there = present(ranges, values)
    if suggested.keys() - ranges.keys() or not values.keys() >= set(there):
        raise ConfigurationError(
            f"the searcher suggested {sorted(suggested)} for the ranges {sorted(ranges)}; "
            "give the searcher the space that search_space() makes of them"
        )
    return {name: values[name] for name in there}


def nearest(ranges: Mapping[str, ParameterRange], hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters without those whose conditions are not met, each outside its range at the nearest value in it.

    Raises:
        ConfigurationError: none is near: the values of the range have no order, or the value is no number.
    """
    values = dict(hyperparameters)
    for name in values.keys() & ranges.keys():
        value = ranges[name]
        if value.is_valid(values[name]):
            continue
        try:
            values[name] = value.at(value.position(values[name]))
        except ConfigurationError as error:
            raise ConfigurationError(f"{name} is {values[name]!r}, and its range {value!r}: {error}") from error
    there = {*present(ranges, values), *(values.keys() - ranges.keys())}
    return {name: value for name, value in values.items() if name in there}
