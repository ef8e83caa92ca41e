"""Annotations of parameters and fields: which values they stand for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from trainers.script.program_options.option import Kind
from trainers.script.program_options.source import UNKNOWN, Module, Source

_SEVERAL = ("list", "List", "Sequence", "tuple", "Tuple", "set", "Set", "Iterable", "Collection")


@dataclass(slots=True, kw_only=True)
class Annotation:
    """An annotation.

    Args:
        name: of the type, without its modules.
        boolean: whether it is a truth value.
        number: whether it is a number.
        whole: whether the number is whole.
        several: whether it is a list or a tuple.
        fixed: whether it is a tuple.
        choices: of a Literal or an Enum.
        extras: what stands behind the type in `Annotated`.
        node: the type itself, without Optional and Annotated.
    """

    name: str = ""
    boolean: bool = False
    number: bool = False
    whole: bool = False
    several: bool = False
    fixed: bool = False
    choices: tuple[Any, ...] = ()
    extras: tuple[ast.expr, ...] = ()
    node: ast.expr | None = None

    @property
    def kind(self) -> Kind:
        """The kind of an option with these values."""
        if self.several:
            return "list"
        if self.choices:
            return "choices"
        return "switch" if self.boolean else "number" if self.number else "text"

    @classmethod
    def of(cls, source: Source, module: Module, node: ast.expr | None) -> Annotation:
        """What an annotation says; nothing of none."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError):
                return cls()
        match node:
            case ast.Subscript(value=outer, slice=inner):
                return cls._subscript(source, module, node, outer, inner)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                sides = [each for each in (left, right) if not (isinstance(each, ast.Constant) and each.value is None)]
                found = [cls.of(source, module, each) for each in sides]
                return next((each for each in found if each.several or each.number or each.boolean), found[0])
        name = module.dotted(node).rpartition(".")[2]
        return cls(
            name=name,
            boolean=name == "bool",
            number=name in ("int", "float"),
            whole=name == "int",
            several=name in _SEVERAL,
            choices=_members(source, name),
            node=node,
        )

    @classmethod
    def _subscript(cls, source: Source, module: Module, node: ast.expr, outer: ast.expr, inner: ast.expr) -> Annotation:
        name = module.dotted(outer).rpartition(".")[2]
        elements = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
        if name == "Annotated" and elements:
            found = cls.of(source, module, elements[0])
            found.extras = (*elements[1:], *found.extras)
            return found
        if name in ("Optional", "Union"):
            sides = [each for each in elements if not (isinstance(each, ast.Constant) and each.value is None)]
            read = [cls.of(source, module, each) for each in sides]
            return next((each for each in read if each.several or each.number or each.boolean), read[0])
        if name in ("Final", "ClassVar", "InitVar", "Positional"):
            return cls.of(source, module, elements[0])
        if name == "Literal":
            values = tuple(module.value(each) for each in elements)
            return cls(name=name, choices=() if UNKNOWN in values else values, node=node)
        return cls(name=name, several=name in _SEVERAL, fixed=name in ("tuple", "Tuple"), node=node)


def _members(source: Source, name: str) -> tuple[Any, ...]:
    """Values of an Enum of the program's own."""
    module, found = source.classes().get(name, (None, None))
    if module is None or found is None or not any("Enum" in module.dotted(each) for each in found.bases):
        return ()
    values = [module.value(each.value) for each in found.body if isinstance(each, ast.Assign)]
    return () if UNKNOWN in values else tuple(values)
