"""Trees of tensors: the dictionaries, lists, tuples and data classes that models take and return."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a tensor among those of a tree."""

    index: int


def replaced(tree: Any, replace: Callable[[Any], Any]) -> Any:
    """The same tree with `replace` of everything in it that is no container."""
    if isinstance(tree, dict):
        made = copy.copy(tree)
        for name, part in tree.items():
            made[name] = replaced(part, replace)
        return made
    if isinstance(tree, list | tuple):
        parts = [replaced(part, replace) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type | Place):
        filled_in: Any = copy.copy(tree)
        for field in dataclasses.fields(tree):
            object.__setattr__(filled_in, field.name, replaced(getattr(tree, field.name), replace))
        return filled_in
    return replace(tree)


def tensors(tree: Any) -> list[Tensor]:
    """The tensors of a tree, in their order."""
    found: list[Tensor] = []

    def note(part: Any) -> Any:
        if isinstance(part, Tensor):
            found.append(part)
        return part

    replaced(tree, note)
    return found


def without(tree: Any) -> Any:
    """The tree with places instead of its tensors, in their order."""
    count = 0

    def number(part: Any) -> Any:
        nonlocal count
        if not isinstance(part, Tensor):
            return part
        count += 1
        return Place(count - 1)

    return replaced(tree, number)


def filled(template: Any, values: Sequence[Any]) -> Any:
    """The tree of a template, with values in its places."""
    return replaced(template, lambda part: values[part.index] if isinstance(part, Place) else part)
