"""Options of argparse: `add_argument` of parsers, groups, parents and subcommands."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from trainers.script.program_options.option import Kind, ProgramOption, is_truth
from trainers.script.program_options.source import UNKNOWN, Module, Source, keywords
from trainers.script.program_options.words import (
    boolean_of_choices,
    boolean_of_type,
    boolean_of_use,
    list_of_type,
    list_of_use,
)

_SWITCHES = ("store_true", "store_false", "store_const", "append_const", "count", "help", "version")


def argparse_options(source: Source) -> Iterator[ProgramOption]:
    """All that a program adds to its parsers, in the order of its text."""
    defaults = _set_defaults(source)
    for module in source.modules:
        commands = dict(_commands(module))
        for node in _calls(module):
            match node.func:
                case ast.Attribute(attr="add_argument", value=receiver):
                    named = receiver.id if isinstance(receiver, ast.Name) else ""
                    option = _option(source, module, node, commands.get(named, ""), defaults)
                    if option is not None:
                        yield option
                case ast.Attribute(attr="add_subparsers"):
                    name = module.value(keywords(node).get("dest"))
                    yield ProgramOption(
                        name=name if isinstance(name, str) else "command",
                        kind="choices",
                        choices=tuple(dict.fromkeys(commands.values())),
                        positional=True,
                        required=True,
                    )


def _calls(module: Module) -> list[ast.Call]:
    found = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    return sorted(found, key=lambda each: (each.func.end_lineno or 0, each.func.end_col_offset or 0))


def _commands(module: Module) -> Iterator[tuple[str, str]]:
    """Variables that hold a subcommand's parser, and groups of its options."""
    known: dict[str, str] = {}
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=variable)], value=ast.Call(func=ast.Attribute(attr="add_parser"), args=[name, *_])
            ) if isinstance(text := module.value(name), str):
                known[variable] = text
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=variable)],
                value=ast.Call(
                    func=ast.Attribute(
                        attr="add_argument_group" | "add_mutually_exclusive_group", value=ast.Name(id=owner)
                    )
                ),
            ) if owner in known:
                known[variable] = known[owner]
    yield from known.items()


def _set_defaults(source: Source) -> dict[str, Any]:
    """Defaults by `set_defaults`; `UNKNOWN` where it is called with several values of a name."""
    found: dict[str, Any] = {}
    for module, call in source.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_defaults":
            for name, node in keywords(call).items():
                value = module.value(node)
                found[name] = value if found.get(name, value) == value else UNKNOWN
    return found


def _option(
    source: Source, module: Module, call: ast.Call, command: str, defaults: Mapping[str, Any]
) -> ProgramOption | None:
    words = [module.value(each) for each in call.args]
    if not words or not all(isinstance(each, str) and each for each in words):
        return None
    given = keywords(call)
    options = tuple(each for each in words if each.startswith("-"))
    name = module.value(given.get("dest"))
    if not isinstance(name, str):
        long = [each for each in options if each.startswith("--")]
        name = (long or options)[0].lstrip("-").replace("-", "_") if options else words[0]
    action = _action(module, given)
    if action in ("help", "version"):
        return None
    read = _Read(source, module, given, action, name, defaults)
    return ProgramOption(
        name=name,
        options=options,
        kind=read.kind,
        whole=read.type == "int",
        default=read.default,
        required=module.value(given.get("required")) is True or (not options and read.nargs not in ("?", "*")),
        help=" ".join(text.split()) if isinstance(text := module.value(given.get("help")), str) else "",
        choices=read.choices,
        boolean=read.boolean,
        list=read.list,
        bare=action in (*_SWITCHES, "BooleanOptionalAction"),
        stored=read.stored,
        positional=not options,
        command=command,
    )


def _action(module: Module, given: dict[str, ast.expr]) -> str:
    node = given.get("action")
    text = module.value(node)
    return text if isinstance(text, str) else module.dotted(node).rpartition(".")[2] if node is not None else "store"


class _Read:
    """What one `add_argument` says of its values."""

    def __init__(
        self,
        source: Source,
        module: Module,
        given: dict[str, ast.expr],
        action: str,
        name: str,
        defaults: Mapping[str, Any],
    ) -> None:
        self._source, self._module, self._given, self._action, self._name = source, module, given, action, name
        self.nargs: Any = module.value(given.get("nargs"))
        self.type = module.dotted(given.get("type"))
        usual = {"store_true": False, "store_false": True}.get(action)
        default = module.value(given["default"]) if "default" in given else usual
        default = defaults.get(name, default)
        stored: Any = {"store_true": True, "store_false": False, "count": True}.get(action)
        if action == "store_const":
            stored = module.value(given.get("const"))
        self.stored = bool(stored) if is_truth(stored) else None
        self._settles = self.stored is not None and is_truth(default, or_none=True) and bool(default) != self.stored
        self.default = None if default is UNKNOWN else default
        choices = module.value(given.get("choices"))
        self.choices = tuple(choices) if isinstance(choices, list | tuple) and UNKNOWN not in choices else ()

    @property
    def kind(self) -> Kind:
        if self._action in (*_SWITCHES, "BooleanOptionalAction") and self._action != "count":
            return "switch"
        if self.list and self.list != "json" and self.list != "comma":
            return "list"
        if self.choices:
            return "choices"
        number = isinstance(self.default, int | float) and not isinstance(self.default, bool)
        if self.type in ("int", "float") or (number and not self.type) or self._action == "count":
            return "number"
        if self.type == "bool" or isinstance(self.default, bool):
            return "switch"
        return "list" if self.list else "text"

    @property
    def boolean(self) -> str:
        if self._action == "BooleanOptionalAction":
            return "--flag/--no-flag"
        if self._action in _SWITCHES:
            return "--flag" if self._settles else ""  # No word gives the other value.
        if self.type == "bool" and self._source.imports("jsonargparse"):  # Its parsers read words for `bool`.
            return "" if self._source.imports("argparse") else "--flag true"
        if "type" in self._given and self.type != "str":
            form = boolean_of_type(self._source, self._module, self._given["type"])
            return form or boolean_of_choices(self.choices)
        if self.choices:
            return boolean_of_choices(self.choices)
        if self.default in ("True", "False"):
            return "--flag True"
        if self.default in ("true", "false"):
            return "--flag true"
        return boolean_of_use(self._source, self._name)

    @property
    def list(self) -> str:
        if self._action == "append":
            return "repeated"
        if (
            self._action == "extend"
            or self.nargs in ("+", "*", "...")
            or (isinstance(self.nargs, int) and not isinstance(self.nargs, bool))
        ):
            return "words"
        if self._action in _SWITCHES:
            return ""
        if "type" in self._given and self.type != "str":
            return list_of_type(self._source, self._module, self._given["type"])
        return list_of_use(self._source, self._name)
