"""Parameters of sweeps: each distribution as a range, or as one clear error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hpo.job_file.models import JobSpec
from tests.support.refusals import refuses, refuses_each
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


def test_what_is_no_range_is_one_error_with_its_line(in_one_line: Job) -> None:
    above = (str(math.exp(3)), str(math.exp(1)))
    cases: list[tuple[Any, tuple[object, ...]]] = [
        ({"values": [1, 2], "probabilities": [0.1, 0.9]}, ("probabilities", [0.1, 0.9])),
        ({"values": [[1, 2], [3]]}, ("values[0]", [1, 2], "text", "quotes")),
        ({"values": 3}, ("values", 3, "list")),
        ({"values": [3, 3]}, ("values", 3, "once")),
        ({"values": []}, ("values", [], "value")),
        ({"distribution": "beta"}, ("distribution", "'beta'", "uniform", "values")),
        ({"distribution": "log_unifrm"}, ("distribution", "'log_unifrm'", "'log_uniform'")),
        ({"min": 3}, ("value", "values", "min", "max")),
        ({"distribution": "uniform", "min": 3}, ("max", "number")),
        ({"distribution": "uniform", "min": "a", "max": 3}, ("min", "'a'", "number")),
        ({"distribution": "int_uniform", "min": 0.5, "max": 3}, ("min", 0.5, "int_uniform", "whole")),
        ({"min": 3, "max": 1}, ("min", 3, "max", 1)),
        ({"distribution": "log_uniform", "min": 3, "max": 1}, ("min", "max", *above)),
        ({"distribution": "log_uniform_values", "min": 0, "max": 1}, ("min", 0.0, "'Logarithmic'", "'Linear'")),
        (
            {"distribution": "log_uniform", "min": 1, "max": 1000},
            ("max", "exponent", 1000, "log_uniform_values"),
        ),
        (
            {"distribution": "q_log_uniform_values", "min": 1, "max": 256, "q": 8},
            ("min", 1, "q", 8, 0.0, "logarithmic"),
        ),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0}, ("q", 0)),
        ({"distribution": "normal", "sigma": 0}, ("standard_deviation", 0.0)),
        ({"min": 0, "max": 1, "mu": 3}, ("parameters.lr.mu", "distribution", "min", "max")),
        ({"values": [1], "vales": 2}, ("parameters.lr.vales", "'values'")),
        (3, ("parameters.lr", 3, "{value: 1}")),
        ({"parameters": 3}, ("parameters.lr.parameters", 3, "names")),
    ]

    def read(given: Any) -> Any:
        try:
            return lr(in_one_line, given)
        except ConfigurationError as refusal:
            if not re.search(r"\bline \d+", str(refusal)):
                raise AssertionError(f"no line: {refusal}") from refusal
            raise

    refuses_each(((partial(read, given), ("parameters.lr", *names)) for given, names in cases), ConfigurationError)


def test_names_are_of_one_parameter_each(job: Job) -> None:
    nested = {"parameters": {"b": {"min": 0, "max": 1}}}
    with refuses(ConfigurationError, field="parameters.'a.b'", value="'a.b'", remedy="parameters.a.parameters.b"):
        job(parameters={"epochs": {"value": 9}, "a": nested, "a.b": {"min": 0, "max": 1}})
    with refuses(ConfigurationError, field="parameters.a/b", value="'a/b'", remedy="'/'"):
        job(parameters={"epochs": {"value": 9}, "a/b": {"min": 0, "max": 1}})
    with refuses(ConfigurationError, field=("parameters", "constants"), remedy=("values", "min", "max")):
        job(parameters={"epochs": {"value": 9}})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"values": ["yes", "no"]}, ("'yes'", "text", "W&B", "true", "false", "quotes")),
        ({"values": [1, None]}, ("null", "W&B", "None")),
        ({"distribution": "log_uniform", "min": -2, "max": 0}, ("exp(min)", "exp(max)", math.exp(-2), 1.0)),
        ({"distribution": "q_uniform", "min": 3, "max": 22, "q": 8}, (8, 0, 24)),
        ({"distribution": "q_uniform", "min": 0, "max": 4}, ("q", 1, "W&B")),
        ({"distribution": "normal"}, ("standard deviations", "mean")),
        ({"parameters": {"b": {"values": [1, 2]}}}, ("--lr.NAME", "W&B", "--lr", "dict")),
    ],
)
def test_what_was_chosen_is_a_comment_with_its_line(
    commented: Callable[..., str], given: Any, names: tuple[object, ...]
) -> None:
    line = commented("parameters.lr", *names, parameters={"epochs": {"value": 9}, "lr": given})
    assert re.search(r"\bline \d+", line), line
