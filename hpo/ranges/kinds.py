"""Kinds of ranges, and their form in the record."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from hpo.ranges.categorical import CategoricalParameter
from hpo.ranges.normal import NormalParameter
from hpo.ranges.numeric import ContinuousParameter, IntegerParameter
from trainers.errors import ConfigurationError

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
