"""All that the source of a program says of how it is given values."""

from __future__ import annotations

import ast
from pathlib import Path

from trainers.script.program_options.absl_options import absl_options
from trainers.script.program_options.argparse_options import argparse_options
from trainers.script.program_options.click_options import click_options, typer_options
from trainers.script.program_options.config_options import config_options, reads_overrides
from trainers.script.program_options.dataclass_options import dataclass_options, parsers_in
from trainers.script.program_options.option import NOTHING, ProgramOption, ProgramOptions, settled
from trainers.script.program_options.source import Source

MOST_READ = 16
"""Programs whose options are kept."""
_READ: dict[tuple[Path, str], tuple[Source, ProgramOptions]] = {}
_TYPED = ("SM_HPS", "SM_HP_", "SM_TRAINING_ENV", "WARMBAND_HYPERPARAMETERS")


def options_of(folder: Path, entry_point: str) -> ProgramOptions:
    """Reads the options of a program from its source; nothing of a program that is no Python file or is not there.

    Args:
        folder: the source folder.
        entry_point: the program's file in it.
    """
    program = (folder, entry_point)
    if program in _READ and _READ[program][0].is_current:
        return _READ[program][1]
    source = Source.read(folder, entry_point)
    options = of_source(source) if source.modules else NOTHING
    if len(_READ) >= MOST_READ:
        _READ.clear()
    _READ[program] = (source, options)
    return options


def of_source(source: Source) -> ProgramOptions:
    """The same of a source that was read."""
    made = parsers_in(source)
    options: list[ProgramOption] = [
        *argparse_options(source),
        *click_options(source),
        *typer_options(source),
        *absl_options(source),
        *dataclass_options(source),
        *config_options(source),
    ]
    overrides = reads_overrides(source)
    own = {"argparse", "click", "typer", "absl"}
    parsers = {name for name in own if source.imports(name)} | {each.package for each in made}
    parsers |= {name for name in ("hydra", "omegaconf") if source.imports(name)}
    variables = frozenset(_variables(source))
    return ProgramOptions(
        parsers=frozenset(parsers),
        options=settled(options),
        style="name=value" if overrides else "",
        boolean=made[0].boolean if len(made) == 1 else "",
        list=made[0].list if len(made) == 1 else "",
        variables=variables,
        reads_words=any(_names_argv(source)),
        meets_others="WORLD_SIZE" in variables or _starts_group(source),
        typed=any(name.startswith(_TYPED) for name in variables) or source.imports("warmband"),
    )


def _starts_group(source: Source) -> bool:
    """Whether it makes a process group of PyTorch's, or uses a library that does."""
    called = (module.dotted(call.func).rpartition(".")[2] for module, call in source.calls())
    return "init_process_group" in called or any(map(source.imports, ("accelerate", "deepspeed")))


def _variables(source: Source) -> set[str]:
    found: set[str] = set()
    for module in source.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Subscript(value=of, slice=key) if module.dotted(of) in ("os.environ", "environ"):
                    found.add(str(module.value(key)))
                case ast.Call(func=function, args=[key, *_]) if module.dotted(function) in (
                    *("os.environ.get", "environ.get", "os.getenv", "getenv", "os.environ.pop"),
                ):
                    found.add(str(module.value(key)))
    return found


def _names_argv(source: Source) -> list[bool]:
    return [
        module.dotted(node) == "sys.argv"
        for module in source.modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute | ast.Name)
    ]
