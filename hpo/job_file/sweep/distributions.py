"""Distributions of a sweep's parameters as ranges of a job file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hpo.job_file.known_keys import LIKENESS
from hpo.job_file.yaml_file import shown
from hpo.ranges import exactly
from trainers.checking import did_you_mean, is_number, is_whole
from trainers.errors import ConfigurationError
from trainers.script import doubled

_YAML_1_1 = ("y", "yes", "on", "n", "no", "off")
"""Text that is true or false by YAML 1.1, which W&B reads, unless it is in quotes."""


@dataclass(slots=True, kw_only=True)
class Parameter:
    """A parameter of a sweep.

    Args:
        given: its keys and values.
        notes: what is to be said of its range.
    """

    given: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)

    def number(self, key: str, default: float | None = None) -> float:
        """A number of its keys.

        Raises:
            ConfigurationError: it is missing, or no number.
        """
        value = self.given.get(key, default)
        if value is None:
            raise ConfigurationError(f"{key} is missing; give a number")
        if not is_number(value):
            raise ConfigurationError(f"{key} is {shown(value)}; give a number")
        return value

    def ends(self) -> tuple[float, float]:
        """`min` and `max`."""
        return self.number("min"), self.number("max")


def distribution_of(given: Mapping[str, Any]) -> str:
    """The name of a parameter's distribution; where the sweep gives none, the one that W&B takes.

    Args:
        given: the parameter's keys and values.

    Raises:
        ConfigurationError: there is no such distribution, or none can be told.
    """
    name = given.get("distribution")
    if name in ("beta", "q_beta"):
        raise ConfigurationError(f"distribution is {name!r}, which Warmband has none of; give uniform, or values")
    if name is not None and name not in KEYS:
        near = did_you_mean(name, KEYS, LIKENESS) or f"; W&B has {', '.join(KEYS)}"
        raise ConfigurationError(f"distribution is {shown(name)}, which is unknown{near}")
    if name is not None:
        return str(name)
    if "value" in given:
        return "constant"
    if "values" in given:
        return "categorical"
    if "min" in given and "max" in given:
        return "int_uniform" if is_whole(given["min"]) and is_whole(given["max"]) else "uniform"
    raise ConfigurationError("it says no value, no values, and not both min and max; give one of these")


def range_of(parameter: Parameter, distribution: str) -> dict[str, Any]:
    """The range of a job file, for a distribution other than `constant`.

    Args:
        parameter: the sweep's; notes are left in it.
        distribution: its name.

    Raises:
        ConfigurationError: its values make no range; the message names key, value and remedy.
    """
    return _RANGES[distribution](parameter)


def _categorical(parameter: Parameter) -> dict[str, Any]:
    values, shares = parameter.given.get("values"), parameter.given.get("probabilities")
    if not isinstance(values, list):
        raise ConfigurationError(f"values is {shown(values)}; give a list")
    for place, value in enumerate(values):
        if isinstance(value, list | dict):
            raise ConfigurationError(
                f"values[{place}] is {shown(value)}, and a value is text, a number, true, false or null; give it as "
                "text, in quotes, which is the same to a program that reads arguments"
            )
        if isinstance(value, str) and value.lower() in _YAML_1_1:
            parameter.notes.append(f"{value!r} is text here; W&B reads it as true or false unless it is in quotes")
        if value is None:
            parameter.notes.append("null leaves the argument out; W&B gives None")
    if shares is not None and not _alike(shares, len(values)):
        raise ConfigurationError(
            f"probabilities is {shown(shares)}, and Warmband draws all values of a list alike; leave probabilities out"
        )
    return {"type": "categorical", "values": doubled(values)}


def _alike(shares: Any, size: int) -> bool:
    return isinstance(shares, list) and len(shares) == size and all(share == shares[0] for share in shares)


def _integer(parameter: Parameter) -> dict[str, Any]:
    low, high = parameter.ends()
    for key, end in (("min", low), ("max", high)):
        if not is_whole(end):
            raise ConfigurationError(f"{key} is {shown(end)} of distribution int_uniform; give a whole number")
    return {"type": "integer", "min": low, "max": high, "scaling": "Linear"}


def _uniform(parameter: Parameter) -> dict[str, Any]:
    low, high = parameter.ends()
    return {"type": "continuous", "min": low, "max": high, "scaling": "Linear"}


def _log_uniform_values(parameter: Parameter) -> dict[str, Any]:
    low, high = parameter.ends()
    return {"type": "continuous", "min": low, "max": high, "scaling": "Logarithmic"}


def _inverse_values(parameter: Parameter) -> dict[str, Any]:
    parameter.notes.append("inv_log_uniform_values draws as log_uniform_values does, alike in every order of magnitude")
    return _log_uniform_values(parameter)


def _log_uniform(parameter: Parameter, side: int = 1) -> dict[str, Any]:
    ends = sorted(_power(key, side * parameter.number(key)) for key in ("min", "max"))
    exponents = "exp(min) to exp(max)" if side > 0 else "exp(-max) to exp(-min)"
    parameter.notes.append(f"min and max are exponents of e: the range is {exponents}, {ends[0]!r} to {ends[1]!r}")
    if parameter.number("min") > parameter.number("max"):
        ends.reverse()  # So that it is refused.
    return {"type": "continuous", "min": ends[0], "max": ends[1], "scaling": "Logarithmic"}


def _power(key: str, exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        raise ConfigurationError(
            f"{key} is an exponent of e, and {exponent} comes to more than a float can say; give distribution "
            "log_uniform_values, whose min and max are values"
        ) from None


def _stepped(parameter: Parameter, scaling: str, low: float, high: float) -> dict[str, Any]:
    """Multiples of q: those that W&B's rounding comes to, from the ends on."""
    step = parameter.number("q", 1)
    if step <= 0:
        raise ConfigurationError(f"q is {step}; give a number above 0")
    by = exactly(step)
    first, last = (round(exactly(end) / by) * by for end in (low, high))
    if scaling == "Logarithmic" and first <= 0:
        raise ConfigurationError(
            f"min is {low!r}, which a q of {step} rounds to {float(first)}, and a logarithmic range has no such value; "
            f"give a min of {step} or more"
        )
    if "q" not in parameter.given:
        parameter.notes.append("q is 1, as it is for W&B where a sweep has none")
    if (first, last) != (exactly(low), exactly(high)):
        parameter.notes.append(f"values are the multiples of {step} from {_written(first)} to {_written(last)}")
    if isinstance(step, int):
        return {"type": "integer", "min": int(first), "max": int(last), "scaling": scaling, "step": step}
    return {"type": "continuous", "min": float(first), "max": float(last), "scaling": scaling, "step": step}


def _written(number: Fraction) -> str:
    return str(int(number) if number.denominator == 1 else float(number))


def _q_uniform(parameter: Parameter) -> dict[str, Any]:
    return _stepped(parameter, "Linear", *parameter.ends())


def _q_log_uniform_values(parameter: Parameter) -> dict[str, Any]:
    return _stepped(parameter, "Logarithmic", *parameter.ends())


def _q_log_uniform(parameter: Parameter) -> dict[str, Any]:
    found = _log_uniform(parameter)
    return _stepped(parameter, "Logarithmic", found["min"], found["max"])


def _normal(parameter: Parameter, scaling: str = "Linear") -> dict[str, Any]:
    mean, deviation = parameter.number("mu", 0.0), parameter.number("sigma", 1.0)
    parameter.notes.append("no value is further than four standard deviations from the mean")
    return {"type": "normal", "mean": mean, "standard_deviation": deviation, "scaling": scaling}


def _q_normal(parameter: Parameter, scaling: str = "Linear") -> dict[str, Any]:
    step = parameter.number("q", 1)
    parameter.notes.append(f"values are multiples of {step}, written with a decimal point, such as {float(step)}")
    return {**_normal(parameter, scaling), "step": step}


_RANGES: dict[str, Callable[[Parameter], dict[str, Any]]] = {
    "categorical": _categorical,
    "categorical_w_probabilities": _categorical,
    "int_uniform": _integer,
    "uniform": _uniform,
    "q_uniform": _q_uniform,
    "log_uniform": _log_uniform,
    "log_uniform_values": _log_uniform_values,
    "q_log_uniform": _q_log_uniform,
    "q_log_uniform_values": _q_log_uniform_values,
    "inv_log_uniform": lambda parameter: _log_uniform(parameter, -1),
    "inv_log_uniform_values": _inverse_values,
    "normal": _normal,
    "q_normal": _q_normal,
    "log_normal": lambda parameter: _normal(parameter, "Logarithmic"),
    "q_log_normal": lambda parameter: _q_normal(parameter, "Logarithmic"),
}


def _keys(name: str) -> tuple[str, ...]:
    if name.startswith("categorical"):
        return ("values", "probabilities")
    ends = ("mu", "sigma") if name.endswith("normal") else ("min", "max")
    return (*ends, "q") if name.startswith("q_") else ends


KEYS: dict[str, tuple[str, ...]] = {"constant": ("value",), **{name: _keys(name) for name in _RANGES}}
"""The keys that each distribution takes beside `distribution` itself."""
