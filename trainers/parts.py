"""Parts: the trainers of a job that has several, whose hyperparameters have their names in front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

ESTIMATOR = "estimator"
"""The hyperparameter that says which trainer trains a configuration."""

SEVERAL, PARTS = "SeveralTrainers", "trainers"
"""What records call such a trainer, and its option with the records of the others."""

Value = TypeVar("Value")


def prefixed(name: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """A trainer's hyperparameters, or their ranges, as the job has them: "boosted" and "eta" are "boosted.eta"."""
    return {f"{name}.{own}": value for own, value in values.items()}


def of_one(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Of a job's hyperparameters those of one trainer, under its own names for them."""
    start = f"{name}."
    return {whole.removeprefix(start): value for whole, value in values.items() if whole.startswith(start)}


def parts_of(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The records of the trainers that a trainer's record is made of, by name; empty where it is one alone."""
    return dict(dict(state.get("options") or {}).get(PARTS) or {}) if state.get("trainer") == SEVERAL else {}
