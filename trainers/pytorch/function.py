"""A user's training function: by itself, or by the name that records and job files keep of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from trainers.pytorch.context import TrainContext

TrainFunction = Callable[["TrainContext"], None]


def name_of(function: TrainFunction) -> str:
    """Where a function is to be found, as "module:name"."""
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', type(function).__name__)}"


def resolve(given: TrainFunction | str) -> TrainFunction:
    """The function itself, out of it or its name.

    Raises:
        ConfigurationError: it is neither, or there is no such function.
    """
    if callable(given):
        return given
    if not isinstance(given, str) or not all(given.partition(":")):
        raise ConfigurationError(
            f"train_loop_per_worker is {given!r}; give a function that takes a TrainContext, or its name as "
            "'module:name'"
        )
    module, _, name = given.partition(":")
    try:
        found: Any = sys.modules.get(module) or import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"train_loop_per_worker {given!r} cannot be loaded ({error}); put the function into a module that can be "
            "imported here, not into a script or another function"
        ) from None
    if not callable(found):
        raise ConfigurationError(f"train_loop_per_worker {given!r} is a {type(found).__name__}; give a function")
    return found  # type: ignore[no-any-return]  # what was looked up is callable


def recorded(given: TrainFunction | str) -> TrainFunction:
    """What a record names; where that cannot be loaded, a function that says so once it is called."""
    try:
        return resolve(given)
    except ConfigurationError as error:
        message = str(error)

        def missing(context: TrainContext) -> None:
            raise ConfigurationError(message)

        missing.__module__, _, missing.__qualname__ = str(given).partition(":")
        return missing
