"""Larger limits of a job that is resumed and values of a trial that is added to it, from the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hpo.job_file.yaml_file import Problem, dotted, overridden, shown
from hpo.jobs import cannot_be_made

KEYS = {
    "max_jobs": "tuning.max_jobs",
    "max_runtime_in_seconds": "tuning.max_runtime_in_seconds",
    "max_wait": "tuning.max_wait",
    "max_cost": "cost.max_cost",
}
"""The limits that can be raised, and where they stand in a job file."""


def limits_of(options: Iterable[str]) -> dict[str, Any]:
    """The limits that options of the command line give, by name.

    Args:
        options: "dotted.key=value", the value as YAML, as for a job file.

    Raises:
        ConfigurationError: one of them is no limit, or cannot be read; the message says all that is wrong.
    """
    values = overridden(options)
    of_trainings = {f"training.{name}": name for name in ("max_runtime_in_seconds", "max_wait")}
    names = {**{key: name for name, key in KEYS.items()}, **of_trainings}
    limits, problems = {}, []
    for keys, value in _leaves(values.values):
        if (key := dotted(keys)) in names:
            limits[names[key]] = value
        else:
            problems.append(Problem(keys=keys, text=cannot_be_made(key, shown(value), list(KEYS.values()))))
    if problems or values.problems:
        raise values.refusal(problems)
    return limits


def point_of(options: Iterable[str]) -> dict[str, Any]:
    """The values of a trial that options of the command line give, by the hyperparameter's name.

    Args:
        options: "name=value", the value as YAML, as for a job file.

    Raises:
        ConfigurationError: one of them cannot be read; the message says all that is wrong.
    """
    values = overridden(options)
    if values.problems:
        raise values.refusal(())
    return {dotted(keys): value for keys, value in _leaves(values.values)}


def _leaves(values: Mapping[str, Any], under: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The values within groups of keys, each with its keys."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*under, key))
        else:
            yield (*under, key), value
