"""Words by which a function or a comparison of a program tells True from False, and lists from text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from trainers.script.program_options.source import Module, Source

PAIRS = (("True", "False"), ("true", "false"), ("yes", "no"), ("on", "off"), ("1", "0"), ("y", "n"), ("t", "f"))
"""Words for True and False, the ones that Python prints first."""

_JSON = ("json.loads", "yaml.safe_load", "yaml.full_load", "yaml.load")
_LITERAL = ("ast.literal_eval", "literal_eval", "eval")
_TRUTHS = ("strtobool", "str2bool", "str_to_bool", "string_to_bool", "boolean_string", "bool_flag", "parse_bool")


def boolean_of_type(source: Source, module: Module, node: ast.expr | None) -> str:
    """How True and False are given to a converter of argparse's `type`; empty where that cannot be told."""
    name = module.dotted(node)
    if name == "bool":
        return "--flag True/''"  # bool("False") is True, and bool("") is False.
    if name in ("int", "float"):
        return "--flag 1"
    if name in _LITERAL:
        return "--flag True"
    if name in _JSON:
        return "--flag true"
    inside: ast.AST | None = node if isinstance(node, ast.Lambda) else source.function(module, name)
    if inside is None:
        return boolean_of_name(name)
    if form := _of_words(_texts(inside), lowers=_lowers(inside)):
        return form
    called = [module.dotted(each.func) for each in ast.walk(inside) if isinstance(each, ast.Call)]
    if form := next(filter(None, map(boolean_of_name, called)), ""):
        return form
    return "--flag 1" if {"int", "float"} & {*called} else "--flag True/''" if "bool" in called else ""


def boolean_of_name(name: str) -> str:
    """The same of a function that stands in no file of the program."""
    last = name.rpartition(".")[2]
    if name in _LITERAL or last.lower() in _TRUTHS:
        return "--flag True"
    return "--flag true" if name in _JSON else ""


def boolean_of_choices(choices: Sequence[Any]) -> str:
    """The same by the values that an option takes; empty where they are not two words for True and False."""
    return _of_words([str(each) for each in choices], lowers=False)


def boolean_of_use(source: Source, name: str) -> str:
    """The same by what the program compares a text with, such as `args.nesterov == "True"`."""
    for module in source.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Compare(left=left, comparators=others) if _reads(left, name):
                    if form := _of_words([text for each in others for text in _texts(each)], lowers=_lowers(left)):
                        return form
                case ast.Call(func=function, args=[first, *_]) if _reads(first, name):
                    if form := boolean_of_name(module.dotted(function)):
                        return form
    return ""


def list_of_type(source: Source, module: Module, node: ast.expr | None) -> str:
    """How lists are given to a converter; empty where that cannot be told."""
    name = module.dotted(node)
    if name in (*_JSON, *_LITERAL):
        return "json"
    inside: ast.AST | None = node if isinstance(node, ast.Lambda) else source.function(module, name)
    return _list_in(module, inside) if inside is not None else ""


def list_of_use(source: Source, name: str) -> str:
    """The same by what the program does with a text, such as `args.sizes.split(",")`."""
    for module in source.modules:
        for node in ast.walk(module.tree):
            called = isinstance(node, ast.Call) and any(_reads(each, name) for each in (node.func, *node.args))
            if called and (form := _list_in(module, node)):
                return form
    return ""


def _list_in(module: Module, inside: ast.AST) -> str:
    for node in ast.walk(inside):
        match node:
            case ast.Call(func=ast.Attribute(attr="split"), args=[ast.Constant(value=",")]):
                return "comma"
            case ast.Call(func=function) if module.dotted(function) in (*_JSON, *_LITERAL):
                return "json"
    return ""


def _of_words(texts: Iterable[str], *, lowers: bool) -> str:
    """The form for a converter or a comparison that has these words in it."""
    found = set(texts)
    for on, off in PAIRS:
        if on in found or off in found:
            if lowers and on == "true":
                return "--flag True"
            return f"--flag {on}"
    return ""


def _texts(node: ast.AST) -> list[str]:
    """Words in an expression or a function, its docstring left out."""
    body = [node]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        documented = ast.get_docstring(node) is not None
        body = list(node.body[1:] if documented else node.body)
    inner = (each for part in body for each in ast.walk(part))
    return [each.value for each in inner if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _lowers(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in ("lower", "casefold") for each in ast.walk(node))


def _reads(node: ast.AST, name: str) -> bool:
    """Whether an expression reads an attribute of a name, such as `args.name`, `args["name"]` or `args.name.lower`."""
    match node:
        case ast.Attribute(attr=attribute, value=inner):
            return attribute == name or (attribute in ("lower", "casefold", "strip", "split") and _reads(inner, name))
        case ast.Subscript(slice=ast.Constant(value=key)):
            return bool(key == name)
        case ast.Call(func=function):
            return _reads(function, name)
    return False
