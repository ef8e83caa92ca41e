"""Options of parsers that are made from dataclasses and functions, such as HfArgumentParser, tyro and jsonargparse."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from trainers.script.program_options.annotations import Annotation
from trainers.script.program_options.click_options import parameters
from trainers.script.program_options.option import Kind, ProgramOption
from trainers.script.program_options.source import UNKNOWN, Function, Module, Source, keywords


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """A library that makes options of annotated names.

    Args:
        package: that it is imported from.
        calls: its functions and classes, to which dataclasses or functions are given.
        boolean: how it takes True and False.
        plain: the same of a value without a default.
        list: how it takes lists.
        hyphens: whether a word has hyphens where the name has underscores.
        nested: whether a dataclass within another has its name and a dot in front.
    """

    package: str
    calls: tuple[str, ...]
    boolean: str
    plain: str = ""
    list: str = "words"
    hyphens: bool = False
    nested: bool = True


PARSERS = (
    Parser(package="transformers", calls=("HfArgumentParser",), boolean="--flag True"),
    Parser(package="trl", calls=("TrlParser",), boolean="--flag True"),
    Parser(
        package="simple_parsing",
        calls=("parse", "add_arguments", "ArgumentParser"),
        boolean="--flag True",
        nested=False,
    ),
    Parser(package="tyro", calls=("cli",), boolean="--flag/--no-flag", plain="--flag True", hyphens=True),
    Parser(
        package="jsonargparse",
        calls=("CLI", "auto_cli", "add_class_arguments", "add_dataclass_arguments", "add_function_arguments"),
        boolean="--flag true",
        list="json",
    ),
    Parser(package="pyrallis", calls=("wrap", "parse"), boolean="--flag true", list="json"),
    Parser(package="draccus", calls=("wrap", "parse"), boolean="--flag true", list="json"),
    Parser(package="fire", calls=("Fire",), boolean="--flag=True", list="json"),
    Parser(package="lightning", calls=("LightningCLI",), boolean="--flag true", list="json"),
    Parser(package="pytorch_lightning", calls=("LightningCLI",), boolean="--flag true", list="json"),
)


def _library(name: str, kind: Kind, default: Any, *, whole: bool = False, required: bool = False) -> ProgramOption:
    return ProgramOption(name=name, options=(f"--{name}",), kind=kind, default=default, whole=whole, required=required)


_TRANSFORMERS = (
    _library("output_dir", "text", None),
    _library("do_train", "switch", True, required=True),
    _library("do_eval", "switch", True, required=True),
    _library("eval_strategy", "text", "epoch", required=True),
    _library("num_train_epochs", "number", 3, whole=True),
    _library("learning_rate", "number", 5e-5),
    _library("per_device_train_batch_size", "number", 8, whole=True),
    _library("weight_decay", "number", 0.0),
)
"""Some fields of Transformers' TrainingArguments, whose source is not the program's: those that a search needs."""


def parsers_in(source: Source) -> list[Parser]:
    """The parsers of these that a program imports."""
    return [each for each in PARSERS if source.imports(each.package)]


def dataclass_options(source: Source) -> Iterator[ProgramOption]:
    """Fields and parameters of what is given to these parsers."""
    known = parsers_in(source)
    if not known:
        return
    for module, call in source.calls():
        name = module.dotted(call.func)
        for parser in known:
            if name.rpartition(".")[2] not in parser.calls:
                continue
            if "LightningCLI" in parser.calls:
                yield from _lightning(source, module, call, parser)
                continue
            for given in _given(call):
                yield from of_name(source, parser, module.dotted(given).rpartition(".")[2], "")
    for module, function in source.functions():  # @pyrallis.wrap() and @draccus.wrap()
        for decorator in function.decorator_list:
            name = module.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            for parser in known:
                if name == f"{parser.package}.wrap":
                    for _, annotation, _ in list(parameters(function))[:1]:
                        kind = Annotation.of(source, module, annotation).name
                        yield from of_name(source, parser, kind, "")


def _given(call: ast.Call) -> Iterator[ast.expr]:
    named = [value for name, value in keywords(call).items() if name in ("dataclass_types", "component", "f", "args")]
    for argument in (*call.args, *named):
        yield from argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]


def of_name(source: Source, parser: Parser, name: str, prefix: str, depth: int = 0) -> Iterator[ProgramOption]:
    """Options of a dataclass, of a class's constructor or of a function."""
    module, found = source.classes().get(name, (None, None))
    if module is not None and found is not None and depth < 5:
        yield from _of_class(source, parser, module, found, prefix, depth)
        return
    for home, function in source.functions():
        if function.name == name:
            yield from _of_function(source, parser, home, function, prefix, depth)
            return
    if name in ("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig"):
        for each in _TRANSFORMERS:
            form = parser.boolean if each.kind == "switch" else ""
            yield replace(each, name=f"{prefix}{each.name}", boolean=form)


def _of_class(
    source: Source, parser: Parser, module: Module, found: ast.ClassDef, prefix: str, depth: int
) -> Iterator[ProgramOption]:
    constructor = next(
        (each for each in found.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
    )
    if constructor is not None:
        yield from _of_function(source, parser, module, constructor, prefix, depth)
        return
    for base in found.bases:
        yield from of_name(source, parser, module.dotted(base).rpartition(".")[2], prefix, depth + 1)
    for statement in found.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            yield from _one(source, parser, module, name, statement.annotation, statement.value, prefix, depth)


def _of_function(
    source: Source, parser: Parser, module: Module, function: Function, prefix: str, depth: int
) -> Iterator[ProgramOption]:
    for name, annotation, default in parameters(function):
        yield from _one(source, parser, module, name, annotation, default, prefix, depth)


def _one(
    source: Source,
    parser: Parser,
    module: Module,
    name: str,
    annotation: ast.expr | None,
    default: ast.expr | None,
    prefix: str,
    depth: int,
) -> Iterator[ProgramOption]:
    read = Annotation.of(source, module, annotation)
    if read.name in source.classes() and not read.choices and depth < 5:
        inner = f"{prefix}{name}." if parser.nested else prefix
        yield from of_name(source, parser, read.name, inner, depth + 1)
        return
    given = keywords(default) if isinstance(default, ast.Call) else {}
    text = module.value(given.get("help"))
    value = module.value(default)
    if isinstance(default, ast.Call) and module.dotted(default.func).rpartition(".")[2] in (
        *("field", "arg", "HfArg", "list_field", "mutable_field"),
    ):
        value = module.value(given.get("default"))
        match given.get("default_factory"):
            case ast.Lambda(body=body):
                value = module.value(body)
            case ast.Name(id="list"):
                value = []
        match given.get("metadata"):
            case ast.Dict() as metadata:
                found = module.value(metadata)
                text = found.get("help", text) if isinstance(found, dict) else text
    missing = default is None or (value is UNKNOWN and not {"default", "default_factory"} & given.keys())
    spelled = f"--{prefix}{name}"
    if parser.hyphens:
        spelled = spelled.replace("_", "-")
    boolean = isinstance(value, bool) or read.boolean
    yield ProgramOption(
        name=f"{prefix}{name}",
        options=(spelled,),
        kind="switch" if boolean else "number" if not read.name and isinstance(value, int | float) else read.kind,
        whole=read.whole or (not read.name and isinstance(value, int)),
        default=None if value is UNKNOWN else value,
        required=missing,
        help=" ".join(text.split()) if isinstance(text, str) else "",
        choices=read.choices,
        boolean=_boolean(parser, prefix, name, missing=missing) if boolean else "",
        list=parser.list if read.several else "",
    )


def _lightning(source: Source, module: Module, call: ast.Call, parser: Parser) -> Iterator[ProgramOption]:
    """Lightning's command, then the constructors of the model and of the data module behind `model.` and `data.`."""
    given = keywords(call)
    if module.value(given.get("run")) is not False:
        commands = ("fit", "validate", "test", "predict")
        yield ProgramOption(name="subcommand", kind="choices", choices=commands, positional=True, required=True)
    names = ("model", "data")
    nodes = {**dict(zip(("model_class", "datamodule_class"), call.args, strict=False)), **given}
    for name, key in zip(names, ("model_class", "datamodule_class"), strict=True):
        target = module.dotted(nodes.get(key)).rpartition(".")[2]
        yield from of_name(source, parser, target, f"{name}.")


def _boolean(parser: Parser, prefix: str, name: str, *, missing: bool) -> str:
    if missing and parser.plain:
        return parser.plain
    if parser.hyphens and prefix:
        prefix, name = prefix.replace("_", "-"), name.replace("_", "-")
        return f"--{prefix}{name}/--{prefix}no-{name}"
    return parser.boolean
