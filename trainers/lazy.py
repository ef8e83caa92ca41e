"""Names of a package that are loaded when they are first used, so that who needs one does not wait for all."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from trainers.loopback import on_loopback


def load_when_used(package: str, homes: Mapping[str, str]) -> None:
    """Lets a package have names that are imported when they are first asked for.

    Args:
        package: its `__name__`; it has `__all__`.
        homes: the module of each name.
    """
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with on_loopback():  # Most homes import Ray.
            namespace[name] = found = getattr(import_module(homes[name]), name)
        return found

    def names() -> list[str]:
        return sorted({*namespace, *namespace["__all__"]})

    namespace.update(__getattr__=get, __dir__=names)
