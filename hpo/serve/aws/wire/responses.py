"""Responses, made as the service's model has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any


def rendered(shape: Any, value: Any, time: Callable[[datetime], Any], path: str = "") -> Any:
    """A value as its shape has it; members that the shape lacks, and those that are None, are left out.

    Args:
        shape: of the operation's output.
        value: what was answered.
        time: a time as the protocol writes it.
        path: of the value, for the error.

    Raises:
        TypeError: a member that the shape requires is missing, or is of another type: a fault of the server.
    """
    kind = shape.type_name
    if kind == "structure":
        _check(isinstance(value, Mapping), shape, value, path)
        sent = {name: value[name] for name in shape.members if value.get(name) is not None}
        if missing := [name for name in shape.required_members if name not in sent]:
            raise TypeError(f"{path or shape.name} lacks {', '.join(missing)}")
        return {name: rendered(shape.members[name], each, time, f"{path}.{name}") for name, each in sent.items()}
    if kind == "list":
        _check(isinstance(value, list | tuple), shape, value, path)
        return [rendered(shape.member, each, time, f"{path}[]") for each in value]
    if kind == "map":
        _check(isinstance(value, Mapping), shape, value, path)
        return {str(key): rendered(shape.value, each, time, f"{path}.{key}") for key, each in value.items()}
    if kind == "timestamp":
        _check(isinstance(value, datetime), shape, value, path)
        return time(value)
    if kind in ("float", "double"):
        _check(isinstance(value, int | float), shape, value, path)
        return float(value)
    _check(isinstance(value, {"string": str, "boolean": bool}.get(kind, int)), shape, value, path)
    return value


def _check(fits: bool, shape: Any, value: Any, path: str) -> None:
    if not fits:
        raise TypeError(f"{path} is no {shape.type_name}: {value!r:.200}")
