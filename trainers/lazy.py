"""Lazy loading of a package's names, so that a user of one does not wait for all.

A package's face is its `__init__`: a sentence, the names that other packages may use under `if TYPE_CHECKING:`, as type
checkers read them, and a call of `load_when_used`.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import import_module
from typing import Any

from trainers.loopback import on_loopback

_IMPORT, _NAME = r"(?m)^    from (\S+) import (\([^)]*\)|.*)$", r"\b(\w+) as \1\b"


def load_when_used(package: str) -> None:
    """Lets a package have the names that its `if TYPE_CHECKING:` block imports, each loaded when it is first asked for.

    Args:
        package: its `__name__`.

    Raises:
        ImportError: a name is asked for, and the package's source is not there.
    """
    namespace = vars(sys.modules[package])

    @cache
    def homes() -> dict[str, str]:
        source = namespace["__loader__"].get_source(package)
        if source is None:
            raise ImportError(
                f"package {package!r} is here as compiled files alone, {namespace['__file__']!r}, and Warmband needs "
                "its sources; install it from its wheel or a checkout"
            )
        return declared(source)

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes()[name]
        with on_loopback():  # Most homes import Ray.
            namespace[name] = loaded = (
                import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
            )
        return loaded

    namespace.update(__getattr__=get, __dir__=lambda: sorted({*namespace, *homes(), "__all__"}))


def declared(source: str) -> dict[str, str]:
    """The names that a face declares, each with the module that has it.

    They are read without Python's parser: every process of a gang reads faces as it starts.

    Args:
        source: of a package's `__init__`, whose block has lines of the form `from module import Name as Name`.
    """
    _, _, block = source.partition("\nif TYPE_CHECKING:\n")
    return {name: home for home, names in re.findall(_IMPORT, block) for name in re.findall(_NAME, names)}
