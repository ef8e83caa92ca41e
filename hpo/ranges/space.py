"""The ranges of a job together: as Ray Tune's search space and back, and in the record."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.normal import NormalParameter
from hpo.ranges.numeric import ContinuousParameter, IntegerParameter
from hpo.ranges.values import Scalar
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

ParameterRange: TypeAlias = ContinuousParameter | IntegerParameter | NormalParameter | CategoricalParameter

_KINDS: dict[str, type[ParameterRange]] = {
    "Continuous": ContinuousParameter,
    "Integer": IntegerParameter,
    "Normal": NormalParameter,
    "Categorical": CategoricalParameter,
}


def range_from_json(state: Mapping[str, Any]) -> ParameterRange:
    """The range that `to_json()` recorded, with its types and its scaling.

    Raises:
        ConfigurationError: the record is not one of a range.
    """
    match state:
        case {"type": str(kind), **given} if kind in _KINDS:
            with suppress(TypeError):
                return _KINDS[kind](**given)
    raise ConfigurationError(f"the record of a range is {state!r}; give what to_json() of a range returns")


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

    What a searcher suggests from it has to go through `decode`.

    Raises:
        ConfigurationError: a name or a range is not one.
    """
    check_ranges(ranges)
    return {name: value.domain() for name, value in ranges.items()}


def encode(ranges: Mapping[str, ParameterRange], hyperparameters: Mapping[str, Scalar]) -> dict[str, Any]:
    """Hyperparameters as points of the space that `search_space` makes of their ranges: what `decode` takes back."""
    return {name: value.encode(hyperparameters[name]) for name, value in ranges.items()}


def decode(ranges: Mapping[str, ParameterRange], suggested: Mapping[str, Any]) -> dict[str, Scalar]:
    """Hyperparameters from what a searcher suggested: within their ranges, and of their types.

    Raises:
        ConfigurationError: the suggestion is not from the space that `search_space` makes of these ranges.
    """
    if suggested.keys() != ranges.keys():
        raise ConfigurationError(
            f"the searcher suggested {sorted(suggested)} for the ranges {sorted(ranges)}; "
            "give the searcher the space that search_space() makes of them"
        )
    values: dict[str, Scalar] = {}
    for name, value in ranges.items():
        try:
            values[name] = value.decode(suggested[name])
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{name}: {error}; give the searcher the space that search_space() makes of the ranges"
            ) from error
    return values
