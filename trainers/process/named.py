"""Python objects by their names in records and job files: "module:name"."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

from trainers.errors import ConfigurationError

PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""A name that another process may find something by."""


def name_of(thing: Any) -> str:
    """Where a function or class is to be found, as "module:name"; of an object that has no name, where nothing is."""
    if hasattr(thing, "__qualname__"):
        return f"{getattr(thing, '__module__', '?')}:{thing.__qualname__}"
    # A partial, say: by the name of its class another process would find that.
    return f"{type(thing).__module__}:{type(thing).__qualname__}.<locals>.object"


def check_outside(name: str, argument: str, kind: str) -> None:
    """Refuses the name of something that is defined inside a function; arguments as of `load`.

    Raises:
        ConfigurationError: no import finds that.
    """
    outer, inside, own = name.rpartition(".<locals>.")
    if inside:
        raise _not_found(name, argument, kind, f"{own} is defined inside {outer}, where no import finds it")


def load(name: str, argument: str, kind: str) -> Any:
    """The function or class of a name. Its module is imported: whoever calls has asked the user first.

    Args:
        name: "module:name".
        argument: what it was given as, for the error.
        kind: what it should be, for the error, such as "function".

    Raises:
        ConfigurationError: there is nothing of that name here.
    """
    check_outside(name, argument, kind)
    module, _, path = name.partition(":")
    try:
        value: Any = sys.modules.get(module) or import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        elsewhere = f"{path} is of a script or notebook that is not this one"
        raise _not_found(name, argument, kind, elsewhere if module == "__main__" else str(error)) from None
    return value


def mentions(function: Any, word: str) -> bool:
    """Whether a function's module, or it alone where it has none, has a word; yes where its source is not known."""
    try:
        return word in inspect.getsource(inspect.getmodule(function) or function).lower()
    except (OSError, TypeError):
        return True


def code_named(options: Mapping[str, Any], names: Collection[str]) -> dict[str, str]:
    """The code among a trainer's options, by what it was given as; each of a list by its place.

    Args:
        options: as recorded.
        names: of those that are code.
    """
    named: dict[str, str] = {}
    for option in names:
        value = options.get(option)
        if isinstance(value, list):
            named |= {f"{option}[{at}]": str(each) for at, each in enumerate(value)}
        elif option in options:
            named[option] = str(value)
    return named


def _not_found(name: str, argument: str, kind: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{argument} {name!r} cannot be loaded ({why}); put the {kind} into a module that can be imported here, not "
        "into a script or another function"
    )
