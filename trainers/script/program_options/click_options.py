"""Options of click and typer: decorators of functions, and the functions' own parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from trainers.script.program_options.annotations import Annotation
from trainers.script.program_options.option import ProgramOption, is_truth
from trainers.script.program_options.source import UNKNOWN, Function, Module, Source, keywords

_CLICK = ("click", "rich_click", "asyncclick")
_NUMBERS = ("click.INT", "click.FLOAT", "click.IntRange", "click.FloatRange", "int", "float")
_WHOLE = ("click.INT", "click.IntRange", "int")


def click_options(source: Source) -> Iterator[ProgramOption]:
    """Options and arguments of click's decorators."""
    for module, call in source.calls():
        package, _, kind = module.dotted(call.func).rpartition(".")
        if package in _CLICK and kind in ("option", "argument"):
            option = _click(module, call, positional=kind == "argument")
            if option is not None:
                yield option


def _click(module: Module, call: ast.Call, *, positional: bool) -> ProgramOption | None:
    words = [module.value(each) for each in call.args]
    words = [each for each in words if isinstance(each, str) and each]
    if not words:
        return None
    given = keywords(call)
    on = tuple(part.strip() for each in words for part in each.split("/")[:1] if part.strip().startswith("-"))
    off = [each.partition("/")[2].strip() for each in words if each.strip().startswith(("-", "/")) and "/" in each[1:]]
    names = [each for each in words if each.isidentifier()]
    long = sorted(on, key=lambda each: not each.startswith("--"))
    name = (names[0] if names else long[0].lstrip("-").replace("-", "_")) if names or long else words[0]
    kind = module.dotted(given.get("type")) or module.dotted(getattr(given.get("type"), "func", None))
    default = module.value(given["default"]) if "default" in given else None
    choices = _choices(module, given.get("type"))
    counts = module.value(given.get("count")) is True
    flag = module.value(given.get("is_flag")) is True or bool(off) or "flag_value" in given or counts
    stored = module.value(given["flag_value"]) if "flag_value" in given else True
    several = module.value(given.get("multiple")) is True
    count = module.value(given.get("nargs"))
    return ProgramOption(
        name=name,
        options=() if positional else on,
        kind="switch"
        if flag or kind in ("bool", "click.BOOL")
        else "list"
        if several or (isinstance(count, int) and count != 1)
        else "choices"
        if choices
        else "number"
        if kind in _NUMBERS or (isinstance(default, int | float) and not isinstance(default, bool))
        else "text",
        whole=kind in _WHOLE or (isinstance(default, int) and not kind),
        default=None if default is UNKNOWN else default,
        required=module.value(given.get("required")) is True
        or (positional and "default" not in given and module.value(given.get("required")) is not False),
        help=" ".join(text.split()) if isinstance(text := module.value(given.get("help")), str) else "",
        choices=choices,
        boolean=_switch(long[0] if long else "", off[0] if off else "", default, stored=stored)
        if flag
        else "--flag true"
        if kind in ("bool", "click.BOOL") or isinstance(default, bool)
        else "",
        list="repeated" if several else "words" if isinstance(count, int) and count != 1 else "",
        bare=flag,
        stored=bool(stored) if flag and not off and is_truth(stored) else None,
        positional=positional,
    )


def _switch(on: str, off: str, default: Any, *, stored: Any = True) -> str:
    """The form of a switch; empty where one of True and False has no word, and is not what no word stands for."""
    if on and off:
        return f"{on}/{off}"
    if off:
        return f"/{off}" if default is True else ""
    return "--flag" if stored is True and is_truth(default, or_none=True) and not default else ""


def _choices(module: Module, node: ast.expr | None) -> tuple[Any, ...]:
    match node:
        case ast.Call(func=function, args=[first, *_]) if module.dotted(function).endswith(".Choice"):
            found = module.value(first)
            return tuple(found) if isinstance(found, list | tuple) and UNKNOWN not in found else ()
    return ()


def typer_options(source: Source) -> Iterator[ProgramOption]:
    """Parameters of the functions that typer runs."""
    run = {
        module.dotted(call.args[0])
        for module, call in source.calls()
        if module.dotted(call.func) == "typer.run" and call.args
    }
    if not source.imports("typer"):
        return
    for module, function in source.functions():
        decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
        marked = any(isinstance(each, ast.Attribute) and each.attr in ("command", "callback") for each in decorators)
        by_click = any(module.dotted(each).partition(".")[0] in _CLICK for each in decorators)
        if (function.name in run or marked) and not by_click:
            yield from _typer(source, module, function)


def _typer(source: Source, module: Module, function: Function) -> Iterator[ProgramOption]:
    for name, annotation, default in parameters(function):
        read = Annotation.of(source, module, annotation)
        call = next((each for each in (default, *read.extras) if _declares(module, each)), None)
        given = keywords(call) if isinstance(call, ast.Call) else {}
        kind = module.dotted(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if kind == "Context":
            continue
        first = list(call.args) if isinstance(call, ast.Call) else []
        if call is default and isinstance(call, ast.Call):
            default = first.pop(0) if first else given.get("default")
        elif call is not default and "default" in given:
            default = given["default"]
        value = UNKNOWN if default is None else module.value(default)
        missing = default is None or value is ...
        words = [text for each in first if isinstance(text := module.value(each), str) and "-" in text]
        long = f"--{name.replace('_', '-')}"
        on = tuple(text for each in words if (text := each.partition("/")[0].strip()))
        off = [each.partition("/")[2].strip() for each in words if "/" in each]
        on = on if words else (long,)
        positional = kind == "Argument" or (missing and kind != "Option")
        boolean = ""
        if read.boolean:
            given_words = _switch(on[0] if on else "", off[0] if off else "", None if missing else value)
            boolean = given_words if words else "--flag/--no-flag"
        yield ProgramOption(
            name=name,
            options=() if positional else on,
            kind=read.kind,
            whole=read.whole,
            default=None if value is UNKNOWN or value is ... else value,
            required=missing,
            help=" ".join(text.split()) if isinstance(text := module.value(given.get("help")), str) else "",
            choices=read.choices,
            boolean=boolean,
            list="words" if read.several and (positional or read.fixed) else "repeated" if read.several else "",
            bare=read.boolean and not positional,
            positional=positional,
        )


def _declares(module: Module, node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and module.dotted(node.func) in ("typer.Option", "typer.Argument")


def parameters(function: Function) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Name, annotation and default of a function's parameters, `self` and the like left out."""
    plain = [*function.args.posonlyargs, *function.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(function.args.defaults))
    pairs = [
        *zip(plain, [*defaults, *function.args.defaults], strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    for place, (parameter, default) in enumerate(pairs):
        if not (place == 0 and parameter.arg in ("self", "cls")):
            yield parameter.arg, parameter.annotation, default
