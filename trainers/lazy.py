"""Lazy loading of a package's names, so that a user of one does not wait for all.

A package's face is its `__init__`: a sentence, the names that other packages may use under `if TYPE_CHECKING:`, as type
checkers read them, and a call of `load_when_used`.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from typing import Any

from trainers.loopback import on_loopback


def load_when_used(package: str) -> None:
    """Lets a package have the names that its `if TYPE_CHECKING:` block imports, each loaded when it is first asked for.

    Args:
        package: its `__name__`.
    """
    namespace = vars(sys.modules[package])
    homes = declared(namespace["__loader__"].get_source(package))

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with on_loopback():  # Most homes import Ray.
            own = homes[name] == package
            namespace[name] = loaded = (
                import_module(f"{package}.{name}") if own else getattr(import_module(homes[name]), name)
            )
        return loaded

    namespace.update(__all__=sorted(homes), __getattr__=get, __dir__=lambda: sorted({*namespace, *homes}))


def declared(source: str) -> dict[str, str]:
    """The names that a face declares, each with the module that has it.

    Args:
        source: of a package's `__init__`.
    """
    return {
        name.asname or name.name: str(node.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
