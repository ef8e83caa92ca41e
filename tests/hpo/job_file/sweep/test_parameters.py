"""Parameters of sweeps: each distribution as a range, or as one clear error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from hpo.job_file.models import JobSpec
from trainers.errors import ConfigurationError

Job = Callable[..., JobSpec]


def lr(job: Job, given: dict[str, Any]) -> dict[str, Any]:
    """The range of one parameter, as the job file's reader has it."""
    found = job(parameters={"epochs": {"value": 9}, "lr": given}).tuning.ranges["lr"].model_dump(exclude_unset=True)
    return dict(found)


def continuous(low: float, high: float, scaling: str, **more: Any) -> dict[str, Any]:
    return {"type": "continuous", "min": low, "max": high, "scaling": scaling, **more}


def integer(low: int, high: int, scaling: str, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "min": low, "max": high, "scaling": scaling, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"values": ["adam", 1, True]}, {"type": "categorical", "values": ["adam", 1, True]}),
        ({"values": [1, 2], "probabilities": [0.5, 0.5]}, {"type": "categorical", "values": [1, 2]}),
        ({"min": 1, "max": 8}, integer(1, 8, "Linear")),
        ({"min": 1, "max": 8000}, integer(1, 8000, "Linear")),
        ({"min": 0, "max": 0.5}, continuous(0, 0.5, "Linear")),
        ({"min": 0.00001, "max": 1.0}, continuous(0.00001, 1, "Linear")),
        ({"distribution": "uniform", "min": 1, "max": 8}, continuous(1, 8, "Linear")),
        ({"distribution": "log_uniform_values", "min": 0.001, "max": 1}, continuous(0.001, 1, "Logarithmic")),
        ({"distribution": "inv_log_uniform_values", "min": 0.001, "max": 1}, continuous(0.001, 1, "Logarithmic")),
        ({"distribution": "log_uniform", "min": -2, "max": 0}, continuous(math.exp(-2), 1, "Logarithmic")),
        ({"distribution": "inv_log_uniform", "min": 0, "max": 2}, continuous(math.exp(-2), 1, "Logarithmic")),
        ({"distribution": "q_uniform", "min": 0, "max": 256, "q": 16}, integer(0, 256, "Linear", step=16)),
        ({"distribution": "q_uniform", "min": 0, "max": 5}, integer(0, 5, "Linear", step=1)),
        ({"distribution": "q_uniform", "min": 0.1, "max": 0.5, "q": 0.1}, continuous(0.1, 0.5, "Linear", step=0.1)),
        ({"distribution": "q_uniform", "min": 3, "max": 22, "q": 8}, integer(0, 24, "Linear", step=8)),
        (
            {"distribution": "q_log_uniform_values", "min": 32, "max": 256, "q": 8},
            integer(32, 256, "Logarithmic", step=8),
        ),
        ({"distribution": "q_log_uniform", "min": 0, "max": 3, "q": 1}, integer(1, 20, "Logarithmic", step=1)),
        (
            {"distribution": "normal", "mu": 10, "sigma": 2},
            {"type": "normal", "mean": 10, "standard_deviation": 2, "scaling": "Linear"},
        ),
        (
            {"distribution": "q_normal", "mu": 10, "sigma": 2, "q": 0.5},
            {"type": "normal", "mean": 10, "standard_deviation": 2, "scaling": "Linear", "step": 0.5},
        ),
        (
            {"distribution": "log_normal"},
            {"type": "normal", "mean": 0, "standard_deviation": 1, "scaling": "Logarithmic"},
        ),
        (
            {"distribution": "q_log_normal", "mu": 3, "q": 2},
            {"type": "normal", "mean": 3, "standard_deviation": 1, "scaling": "Logarithmic", "step": 2},
        ),
    ],
)
def test_a_distribution_is_a_range(job: Job, given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert lr(job, given) == expected


@pytest.mark.parametrize("q", [1, 8, 0.1, 0.25, 3])
def test_quantized_values_are_those_that_rounding_comes_to(job: Job, q: float) -> None:
    """`round(X / q) * q`, as W&B documents it."""
    spec = job(parameters={"epochs": {"value": 9}, "lr": {"distribution": "q_uniform", "min": 0.7, "max": 9.1, "q": q}})
    rounded = {round(round(x / 1000 / q) * q, 9) for x in range(700, 9101)}
    assert sorted(rounded) == pytest.approx(spec.tuning.ranges["lr"].parameter().members())


def test_constants_are_static_and_nested_names_are_dotted(job: Job) -> None:
    optimizer = {"parameters": {"name": {"value": "sgd"}, "momentum": {"min": 0.1, "max": 0.9}}}
    spec = job(parameters={"epochs": {"value": 9}, "sizes": {"value": [3, 4]}, "optimizer": optimizer})
    assert spec.trainer.hyperparameters == {"epochs": 9, "sizes": [3, 4], "optimizer.name": "sgd"}
    assert [*spec.tuning.ranges] == ["optimizer.momentum"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"values": [1, 2], "probabilities": [0.1, 0.9]},
            "probabilities is [0.1, 0.9], and Warmband draws all values of a list alike; leave probabilities out",
        ),
        ({"values": [[1, 2], [3]]}, "values[0] is [1, 2], and a value is text, a number, true, false or null; give it"),
        ({"values": 3}, "values is 3; give a list"),
        ({"values": [3, 3]}, "values has 3 twice; give it once"),
        ({"values": []}, "give at least one value"),
        ({"distribution": "beta"}, "distribution is 'beta', which Warmband has none of; give uniform, or values"),
        ({"distribution": "log_unifrm"}, "is 'log_unifrm', which is unknown; did you mean 'log_uniform'?"),
        ({"min": 3}, "it says no value, no values, and not both min and max"),
        ({"distribution": "uniform", "min": 3}, "max is missing; give a number"),
        ({"distribution": "uniform", "min": "a", "max": 3}, "min is 'a'; give a number"),
        ({"distribution": "int_uniform", "min": 0.5, "max": 3}, "min is 0.5 of distribution int_uniform; give a whole"),
        ({"min": 3, "max": 1}, "min is 3 and max is 1; give a min that is not above max"),
        ({"distribution": "log_uniform", "min": 3, "max": 1}, "give a min that is not above max"),
        ({"distribution": "log_uniform_values", "min": 0, "max": 1}, "give a min above 0, or scaling 'Linear'"),
        (
            {"distribution": "log_uniform", "min": 1, "max": 1000},
            "max is an exponent of e, and 1000 comes to more than",
        ),
        (
            {"distribution": "q_log_uniform_values", "min": 1, "max": 256, "q": 8},
            "min is 1, which a q of 8 rounds to 0.0, and a logarithmic range has no such value; give a min of 8",
        ),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0}, "q is 0; give a number above 0"),
        ({"distribution": "normal", "sigma": 0}, "standard_deviation is 0.0; give a number above 0"),
        ({"min": 0, "max": 1, "mu": 3}, "parameters.lr.mu: unknown key"),
        ({"values": [1], "vales": 2}, "parameters.lr.vales: unknown key; did you mean 'values'?"),
        (3, "parameters.lr is 3; give a group of keys, such as {value: 1}"),
        ({"parameters": 3}, "parameters.lr.parameters is 3; give names and parameters"),
    ],
)
def test_what_is_no_range_is_one_error_with_its_line(job: Job, given: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sweep file '.*sweep.yaml':\n  line \d+: parameters\.lr") as error:
        lr(job, given)
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 2


def test_names_are_of_one_parameter_each(job: Job) -> None:
    nested = {"parameters": {"b": {"min": 0, "max": 1}}}
    with pytest.raises(ConfigurationError, match=r"has the name 'a.b', as .* has; give another"):
        job(parameters={"epochs": {"value": 9}, "a": nested, "a.b": {"min": 0, "max": 1}})
    with pytest.raises(ConfigurationError, match="has the name 'a/b'; give a name without '/'"):
        job(parameters={"epochs": {"value": 9}, "a/b": {"min": 0, "max": 1}})
    with pytest.raises(ConfigurationError, match="parameters has constants alone, so there is nothing to search"):
        job(parameters={"epochs": {"value": 9}})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"values": ["yes", "no"]}, "'yes' is text here; W&B reads it as true or false unless it is in quotes"),
        ({"values": [1, None]}, "null leaves the argument out; W&B gives None"),
        ({"distribution": "log_uniform", "min": -2, "max": 0}, "exp(min) to exp(max), 0.1353352832366127 to 1.0"),
        ({"distribution": "q_uniform", "min": 3, "max": 22, "q": 8}, "values are the multiples of 8 from 0 to 24"),
        ({"distribution": "q_uniform", "min": 0, "max": 4}, "q is 1, as it is for W&B where a sweep has none"),
        ({"distribution": "normal"}, "no value is further than four standard deviations from the mean"),
        ({"parameters": {"b": {"values": [1, 2]}}}, "the program gets --lr.NAME for each; W&B gives --lr a dict"),
    ],
)
def test_what_was_chosen_is_a_comment_with_its_line(converted: Callable[..., str], given: Any, told: str) -> None:
    text = converted(parameters={"epochs": {"value": 9}, "lr": given})
    assert re.search(rf"^# line \d+: parameters\.lr.*{re.escape(told)}", text, re.MULTILINE), text
