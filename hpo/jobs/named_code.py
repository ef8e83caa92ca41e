"""Python code named by a job file or a record, run only with the user's consent."""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any

from hpo.strategies import OWN_STRATEGY, strategy_code
from trainers.errors import ConfigurationError

LEAVE = "--allow-code"
"""How a user of the `hpo` command allows code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCode:
    """One function or class that a job would import and call.

    Args:
        key: of the job file or record, such as "trainer.train_loop".
        name: the function or class, as "module:name"; or a program, as its file.
        here: whether it would be looked for in the working directory first, as the `hpo` command does.
    """

    key: str
    name: str
    here: bool = True

    def __str__(self) -> str:
        module, _, name = self.name.partition(":")
        if not name:
            return f"{self.key} {self.name!r}, a program"
        return f"{self.key} {self.name!r}, which is {name} of {_home(module, self.here)}"


def in_record(spec: Mapping[str, Any], *, here: bool = False) -> list[NamedCode]:
    """The code that the `spec` of a job's row names; `here` as in `NamedCode`."""
    from trainers.registry import code_in  # imports Ray

    named = {**code_in(spec["estimator"]), **strategy_code(spec["strategy"], spec.get("strategy_config"))}
    named |= inputs_code(spec.get("inputs") or {})
    return [NamedCode(key=key, name=name, here=here) for key, name in named.items()]


def inputs_code(recorded: Mapping[str, Any]) -> dict[str, str]:
    """The functions that make datasets of a job's channels, as "module:name", out of the `inputs` of its record."""
    how = {f"inputs.{name}": channel.get("open") or {} for name, channel in recorded.items()}
    return {key: str(each["arguments"]["function"]) for key, each in how.items() if each.get("examples") == "named"}


def check_record(spec: Mapping[str, Any], allowed: Container[str], name: str, remedy: str = LEAVE) -> None:
    """Refuses to run a job of the record that names other code than was allowed.

    Args:
        spec: of the job's row.
        allowed: the code, each as "module:name".
        name: the job's.
        remedy: what to give for it to be allowed.

    Raises:
        ConfigurationError: saying what would run.
    """
    check_allowed([code for code in in_record(spec) if code.name not in allowed], False, f"job {name!r}", remedy)


def check_allowed(named: Iterable[NamedCode], allowed: bool, about: str, remedy: str = LEAVE) -> None:
    """Refuses to go on with a job that names code, unless its user allowed that. Nothing is imported to tell.

    Args:
        named: what the job names.
        allowed: whether the user did, as by `--allow-code`.
        about: the job, for the error, such as "job file 'job.yaml'".
        remedy: what to give for it to be allowed.

    Raises:
        ConfigurationError: saying what would run.
    """
    names = "; ".join(map(str, named))
    if names and not allowed:
        raise ConfigurationError(
            f"{about} names Python code, which would run here and on every worker: {names}; "
            f"look at it, and give {remedy} if you trust it"
        )


def attached_code(spec: Mapping[str, Any], name: str, *, allow_code: bool) -> frozenset[str]:
    """The code that a job may run which somebody attaches to.

    Args:
        spec: of the job's row.
        name: the job's.
        allow_code: whether its user allowed what the record names.

    Raises:
        ConfigurationError: its trainer or its strategy is a class of a user's own, and that is not allowed.
    """
    from trainers.trainer import OWN_CLASS  # imports Ray

    named = in_record(spec)
    if not allow_code:
        own = [code for code in named if code.key in (OWN_CLASS, OWN_STRATEGY)]
        check_allowed(own, False, f"job {name!r}", "attach() allow_code=True")
        return frozenset()
    return frozenset(code.name for code in named)


def look_here_too() -> None:
    """Lets code that was allowed be found in the working directory, where the `hpo` command does not look by itself.

    The driver of a job that names no code imports nothing from there.
    """
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def file_of(module: str, places: Sequence[str]) -> str | None:
    """Return the file of a module, found as an import would find it but without running anything.

    Args:
        module: its dotted name.
        places: folders to look in, in order, as `sys.path` has them.

    Returns:
        The file, "" for a module without one, None for a module that is not there.
    """
    spec, within = None, [*places]
    for end in range(1, module.count(".") + 2):
        name = ".".join(module.split(".")[:end])
        try:
            spec = PathFinder.find_spec(name, within)
        except (ImportError, ValueError, KeyError):  # KeyError: a folder without __init__ in one that is not imported
            spec = None
        if spec is None:
            return None
        within = list(spec.submodule_search_locations or [])
    return spec.origin or "" if spec else ""


def _home(module: str, here: bool) -> str:
    """A module and its file."""
    origin = file_of(module, [*([os.getcwd()] if here else []), *sys.path])
    return f"{module}, which is not here" if origin is None else origin or module
