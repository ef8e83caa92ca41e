"""Names of hyperparameters where several trainers share a job: each trainer's have its name in front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

ESTIMATOR = "estimator"
"""The hyperparameter that says which trainer trains a configuration."""

Value = TypeVar("Value")


def prefixed(name: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """A trainer's hyperparameters, or their ranges, as the job has them: "boosted" and "eta" are "boosted.eta"."""
    return {f"{name}.{own}": value for own, value in values.items()}


def of_one(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a job's hyperparameters those of one trainer, under its own names for them."""
    start = f"{name}."
    return {whole.removeprefix(start): value for whole, value in values.items() if whole.startswith(start)}
