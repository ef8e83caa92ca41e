"""Points: values that a person gives for some hyperparameters of a trial, or for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.conditions import among, required
from hpo.ranges.kinds import ParameterRange
from hpo.ranges.values import Scalar, either
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError


def checked_point(ranges: Mapping[str, ParameterRange], values: object, what: str) -> dict[str, Scalar]:
    """The values of a point, in the types of their ranges.

    Args:
        ranges: a range a tuned hyperparameter.
        values: by name; those that are left out are the searcher's.
        what: what errors call the point.

    Raises:
        ConfigurationError: a name has no range, a value is not of its range, or a condition is not met.
    """
    if not isinstance(values, Mapping) or not values:
        raise ConfigurationError(f"{what} is {values!r}; give a value for one tuned hyperparameter or more, by name")
    point = {}
    for name, value in values.items():
        if name not in ranges:
            raise ConfigurationError(
                f"{what} has {name!r}, which has no range; give values for {', '.join(ranges)}"
                f"{did_you_mean(name, ranges)}"
            )
        if not ranges[name].is_valid(value):
            raise ConfigurationError(f"{what} has {name!r} {value!r}; give a value of {ranges[name]!r}")
        point[name] = _own(ranges[name], value)
    for name in point:
        for other, accepted in required(ranges, name).items():
            if other not in point or not among(ranges[other], point[other], accepted):
                wanted = f"{what} has {name!r}, which there is only if {other!r} is {either(accepted)}"
                remedy = "leave it out" if other in point else f"give {other!r}, too"
                raise ConfigurationError(f"{wanted}; {remedy}")
    return point


def _own(bounds: ParameterRange, value: object) -> Scalar:
    """A value in the type of its range; of steps, as it is written."""
    own = bounds.cast_to_type(value)
    return own if isinstance(bounds, CategoricalParameter) or bounds.step is None else bounds.at(bounds.position(own))


def checked_points(ranges: Mapping[str, ParameterRange], points: object) -> list[dict[str, Scalar]]:
    """The points that a job begins with.

    Args:
        ranges: a range a tuned hyperparameter.
        points: a list of them; None is none.

    Raises:
        ConfigurationError: one of them is none.
    """
    if points is None:
        return []
    if not isinstance(points, Sequence) or isinstance(points, str | bytes):
        raise ConfigurationError(
            f"points_to_evaluate is {points!r}; give a list of dicts, such as [{{{next(iter(ranges))!r}: ...}}]"
        )
    return [checked_point(ranges, point, f"points_to_evaluate[{place}]") for place, point in enumerate(points)]
