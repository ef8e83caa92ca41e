"""A user's training function: itself, or its name in records and job files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trainers.errors import ConfigurationError
from trainers.process import load

if TYPE_CHECKING:
    from trainers.pytorch.context import TrainContext

TrainFunction = Callable[["TrainContext"], None]

ARGUMENT = "train_loop_per_worker"
"""What trainers take it as."""


def resolve(given: TrainFunction | str) -> TrainFunction:
    """The function itself, out of it or its name.

    Raises:
        ConfigurationError: it is neither, or there is no such function.
    """
    if callable(given):
        return given
    if not isinstance(given, str) or not all(given.partition(":")):
        raise ConfigurationError(
            f"{ARGUMENT} is {given!r}; give a function that takes a TrainContext, or its name as 'module:name'"
        )
    function = load(given, ARGUMENT, "function")
    if not callable(function):
        raise ConfigurationError(f"{ARGUMENT} {given!r} is a {type(function).__name__}; give a function")
    return function  # type: ignore[no-any-return]  # what was looked up is callable


def unloaded(name: str) -> TrainFunction:
    """A function of which the name alone is known: it is imported nowhere, and says so once it is called."""

    def refused(context: TrainContext) -> None:
        raise ConfigurationError(
            f"{ARGUMENT} {name!r} was named by a record, which runs no code unless that is allowed: look at it, and "
            "give allow_code=True to attach(), or --allow-code to hpo resume, if you trust it"
        )

    refused.__module__, _, refused.__qualname__ = name.partition(":")
    return refused
