"""Flags of absl: `flags.DEFINE_...`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from trainers.script.program_options.option import ProgramOption
from trainers.script.program_options.source import UNKNOWN, Module, Source, keywords

_LISTS = {"list": "comma", "spaceseplist": "spaces"}
_USUAL_CONFIG = "configs/default.py"
"""The file that Flax's examples have beside the program."""


def absl_options(source: Source) -> Iterator[ProgramOption]:
    """All flags that a program defines with a name that its text has."""
    for module, call in source.calls():
        if not isinstance(call.func, ast.Attribute | ast.Name):
            continue
        kind = (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id).partition("DEFINE_")[2]
        if not kind or kind == "alias":
            continue
        if kind == "config_file":
            yield from _config_file(source, module, call)
            continue
        given: dict[str, ast.expr] = {
            **dict(zip(("name", "default", "third", "fourth"), call.args, strict=False)),
            **keywords(call),
        }
        name = module.value(given.get("name"))
        if not isinstance(name, str) or not name:
            continue
        default = module.value(given.get("default"))
        listed = kind.startswith("enum")
        choices = module.value(given.get("enum_values", given.get("third"))) if listed else []
        text = module.value(given.get("help", given.get("fourth" if listed else "third")))
        boolean, several = kind in ("bool", "boolean"), kind.startswith("multi_") or kind in _LISTS
        values: tuple[Any, ...] = tuple(choices) if isinstance(choices, list | tuple) and UNKNOWN not in choices else ()
        yield ProgramOption(
            name=name,
            options=(f"--{name}",),
            kind="switch"
            if boolean
            else "list"
            if several
            else "choices"
            if listed
            else "number"
            if kind in ("float", "integer")
            else "text",
            whole=kind == "integer",
            default=None if default is UNKNOWN else default,
            help=" ".join(text.split()) if isinstance(text, str) else "",
            choices=values,
            boolean="--flag/--noflag" if boolean else "",
            bare=boolean,
            list="repeated" if kind.startswith("multi_") else _LISTS.get(kind, ""),
        )


def _config_file(source: Source, module: Module, call: ast.Call) -> Iterator[ProgramOption]:
    """The flag of ml_collections that names a Python file of values, and a flag for each value."""
    given = {**dict(zip(("name", "default"), call.args, strict=False)), **keywords(call)}
    name, default = module.value(given.get("name")), module.value(given.get("default"))
    if not isinstance(name, str):
        return
    told = isinstance(default, str)
    path = str(default) if told else _USUAL_CONFIG
    values = source.beside(path)
    shown = path if told or values is not None else None
    yield ProgramOption(name=name, options=(f"--{name}",), default=shown, required=not told, help="a file of values")
    if values is None:
        return
    for node in ast.walk(values.tree):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=owner, attr=last)], value=value):
                # `config.model.lr = 0.1`, whatever the variable is called.
                dotted = ".".join((name, *values.dotted(owner).split(".")[1:], last))
                yield _of_value(dotted, values.value(value))


def _of_value(name: str, value: Any) -> ProgramOption:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return ProgramOption(
        name=name,
        options=(f"--{name}",),
        kind="switch" if isinstance(value, bool) else "number" if number else "text",
        whole=isinstance(value, int),
        default=None if value is UNKNOWN else value,
        boolean="--flag=true" if isinstance(value, bool) else "",
    )
