"""Python code that a job file or a record names, which runs only where the user allows it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any

from trainers.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCode:
    """One function that a job would import and call.

    Args:
        key: of the job file or record, such as "trainer.train_loop".
        name: the function, as "module:name".
    """

    key: str
    name: str

    def __str__(self) -> str:
        module, _, function = self.name.partition(":")
        return f"{self.key} {self.name!r}, the function {function} of {_home(module)}"


def in_record(spec: Mapping[str, Any]) -> list[NamedCode]:
    """What the `spec` of a job's row names."""
    options = spec["estimator"].get("options") or {}
    name = options.get("train_loop_per_worker")
    return [NamedCode(key="train_loop_per_worker", name=str(name))] if name is not None else []


def check_allowed(named: Iterable[NamedCode], allowed: bool, about: str) -> None:
    """Refuses to go on with a job that names code, unless its user allowed that. Nothing is imported to tell.

    Args:
        named: what the job names.
        allowed: whether the user did, as by `--allow-code`.
        about: the job, for the error, such as "job file 'job.yaml'".

    Raises:
        ConfigurationError: saying what would run.
    """
    found = "; ".join(map(str, named))
    if found and not allowed:
        raise ConfigurationError(
            f"{about} names Python code, which would run here and on every worker: {found}; "
            "look at it, and give --allow-code if you trust it"
        )


def _home(module: str) -> str:
    """A module and its file, found as an import would find it but without running anything."""
    places, found = [os.getcwd(), *sys.path], None
    for end in range(1, module.count(".") + 2):
        name = ".".join(module.split(".")[:end])
        try:
            found = PathFinder.find_spec(name, places)
        except (ImportError, ValueError, KeyError):  # KeyError: a folder without __init__ in one that is not imported
            found = None
        if found is None:
            return f"{module}, which is not here"
        places = list(found.submodule_search_locations or [])
    return f"{found.origin}" if found and found.origin else module
