"""Parameters of a sweep: the ranges of a job file, and its static hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hpo.job_file.range_models import Range
from hpo.job_file.sweep.distributions import KEYS, Parameter, distribution_of, range_of
from hpo.job_file.sweep.sweep_file import Sweep
from hpo.job_file.yaml_file import Keys, dotted, shown
from hpo.ranges import ParameterRange
from trainers.errors import ConfigurationError

_RANGE: TypeAdapter[Any] = TypeAdapter(Range)


@dataclass(slots=True, kw_only=True)
class Parameters:
    """A sweep's parameters.

    Args:
        constants: values that are the same in every trial.
        ranges: of the job file.
        parameters: the ranges in the Python API's form.
        keys: of each parameter in the sweep.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    ranges: dict[str, dict[str, Any]] = field(default_factory=dict)
    parameters: dict[str, ParameterRange] = field(default_factory=dict)
    keys: dict[str, Keys] = field(default_factory=dict)


def parameters_of(sweep: Sweep) -> Parameters:
    """The parameters of a sweep; what cannot be one is refused in it."""
    found = Parameters()
    given = sweep.group("parameters")
    _take(sweep, found, given, (), ("parameters",))
    if not found.ranges and not sweep.problems:
        what = "has constants alone" if given else "is missing"
        text = f"parameters {what}, so there is nothing to search; give one of them as values, or as min and max"
        sweep.refuse(("parameters",), text)
    return found


def _take(sweep: Sweep, found: Parameters, group: Mapping[str, Any], outer: tuple[str, ...], keys: Keys) -> None:
    for name, given in group.items():
        inner: Keys = (*keys, name)
        if not isinstance(given, dict):
            sweep.refuse(inner, f"{dotted(inner)} is {shown(given)}; give a group of keys, such as {{value: 1}}")
        elif "parameters" in given:
            _nested(sweep, found, given, (*outer, name), inner)
        else:
            _one(sweep, found, given, ".".join((*outer, name)), inner)


def _nested(sweep: Sweep, found: Parameters, given: Mapping[str, Any], names: tuple[str, ...], keys: Keys) -> None:
    whole = ".".join(names)
    sweep.check_known(given, ("parameters",), *map(str, keys))
    if not isinstance(given["parameters"], dict):
        sweep.refuse(keys, f"{dotted(keys)}.parameters is {shown(given['parameters'])}; give names and parameters")
        return
    sweep.note(keys, f"{dotted(keys)} is nested: the program gets --{whole}.NAME for each; W&B gives --{whole} a dict")
    _take(sweep, found, given["parameters"], names, (*keys, "parameters"))


def _one(sweep: Sweep, found: Parameters, given: Mapping[str, Any], name: str, keys: Keys) -> None:
    where = dotted(keys)
    if name in found.keys:
        other = dotted(found.keys[name])
        return sweep.refuse(keys, f"{where} has the name {name!r}, as {other} has; give another")
    if not name or "/" in name:
        return sweep.refuse(
            keys, f"{where} has the name {name!r}; give a name without '/', which a job file has none of"
        )
    found.keys[name] = keys
    parameter = Parameter(given=given)
    try:
        distribution = distribution_of(given)
        sweep.check_known(given, ("distribution", *KEYS[distribution]), *map(str, keys))
        if distribution == "constant":
            _constant(parameter, found, name)
        else:
            made = range_of(parameter, distribution)
            found.parameters[name] = _checked(made)
            found.ranges[name] = made
    except ConfigurationError as error:
        return sweep.refuse(keys, f"{where}: {error}")
    for text in parameter.notes:
        sweep.note(keys, f"{where}: {text}")
    return None


def _constant(parameter: Parameter, found: Parameters, name: str) -> None:
    if "value" not in parameter.given:
        raise ConfigurationError("value is missing; give one")
    value = found.constants[name] = parameter.given["value"]
    if value is None:
        parameter.notes.append("null leaves the argument out; W&B gives None")
    if isinstance(value, list | dict):
        parameter.notes.append("the program gets it as JSON; W&B writes it as Python does")


def _checked(made: dict[str, Any]) -> ParameterRange:
    """The range in the Python API's form.

    Raises:
        ConfigurationError: its values do not go together.
    """
    try:
        found: ParameterRange = _RANGE.validate_python(made).parameter()
        return found
    except ValidationError as error:
        detail = error.errors()[0]
        raise ConfigurationError(str(detail.get("ctx", {}).get("error", detail["msg"]))) from error
