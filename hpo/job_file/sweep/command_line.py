"""The command of a sweep in its parts: what starts the program, the program, and what stands behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpo.job_file.known_keys import LIKENESS
from hpo.job_file.sweep.sweep_file import Sweep
from hpo.job_file.yaml_file import shown
from trainers.checking import did_you_mean

COMMAND = ("command",)
USUAL = ("${env}", "${interpreter}", "${program}", "${args}")
"""W&B's command where a sweep has none."""

_MACRO = re.compile(r"\$\{(?P<name>[^}]*)\}")
ARGUMENTS: dict[str, Any] = {
    "args_no_boolean_flags": {"booleans": "--flag"},
    "args_no_hyphens": {"style": "name=value"},
    "args_append_hydra": {"style": "+name=value"},
    "args_override_hydra": {"style": "++name=value"},
    "args_json_file": {"style": "file", "file": {"name": "args.json"}},
}
"""Values of `arguments` in the job file, for macros whose form is not `--name value`."""
_READS = "let the program read the JSON file that WARMBAND_HYPERPARAMETERS names, and give ${args}"
_ARGUMENTS = {
    "args": "",
    "args_no_boolean_flags": "",
    "args_no_hyphens": "",
    "args_append_hydra": "",
    "args_override_hydra": "",
    "args_json": f"one argument of JSON, and Warmband gives --name value; {_READS}",
    "args_json_file": "",
}
"""Macros of hyperparameters, and of those that Warmband has none of, what the program would get."""
_OTHERS = ("env", "interpreter", "program")


@dataclass(slots=True, kw_only=True)
class CommandLine:
    """A command in its parts.

    Args:
        before: words that start the program, without `env` and the variables that it sets.
        environment: those variables.
        program: the program's file.
        static: arguments with a value, by their names without hyphens.
        flags: further words behind the program.
        arguments: the macro of hyperparameters; empty where there is none.
    """

    before: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    program: str
    static: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    arguments: str = ""


def command_line_of(sweep: Sweep) -> CommandLine | None:
    """The parts of a sweep's command; None where it is refused.

    Args:
        sweep: the command's problems are noted in it.
    """
    before_it = len(sweep.problems)
    words = _words(sweep)
    program = sweep.values.get("program")
    if program is not None and (not isinstance(program, str) or not program):
        sweep.refuse(("program",), f"program is {shown(program)}; give the path of the program")
    for word in words:
        _check_macro(sweep, word)
    if len(sweep.problems) > before_it:
        return None
    place = _place_of_program(words, program)
    if place is None:
        text = "program is missing, and no file that ends in .py is in command; give program: train.py"
        sweep.refuse(("program",) if program is None else COMMAND, text)
        return None
    found = CommandLine(before=words[:place], program=words[place])
    if found.program == "${program}":
        found.program = str(program)
    _take_environment(found)
    _take_behind(sweep, found, words[place + 1 :])
    return found if len(sweep.problems) == before_it else None


def _words(sweep: Sweep) -> list[str]:
    given = sweep.values.get("command")
    if given is None:
        return [*USUAL]
    if not isinstance(given, list) or not given or any(isinstance(word, list | dict) for word in given):
        sweep.refuse(COMMAND, f"command is {shown(given)}; give a list of words")
        return []
    return [str(word) for word in given]


def _check_macro(sweep: Sweep, word: str) -> None:
    for found in _MACRO.finditer(word):
        name, whole = found["name"], found[0]
        if name.startswith("envvar:"):
            text = f"command has {whole}, which a job file has none of; write the variable's value there"
            sweep.refuse(COMMAND, text)
        elif name not in (*_ARGUMENTS, *_OTHERS):
            near = did_you_mean(name, (*_ARGUMENTS, *_OTHERS), LIKENESS)
            sweep.refuse(COMMAND, f"command has {whole}, which W&B has no such macro of{near or '; leave it out'}")
        elif whole != word:
            sweep.refuse(COMMAND, f"command has {shown(word)}; give {whole} as a word of its own")
        elif _ARGUMENTS.get(name):
            sweep.refuse(COMMAND, f"command has {whole}, by which the program gets {_ARGUMENTS[name]}")


def _place_of_program(words: Sequence[str], program: str | None) -> int | None:
    if "${program}" in words and program is not None:
        return words.index("${program}")
    if program in words:
        return words.index(str(program))
    return next((place for place, word in enumerate(words) if word.endswith(".py")), None)


def _take_environment(found: CommandLine) -> None:
    """Takes `env` and the variables behind it off the words that start the program."""
    if not found.before or found.before[0] not in ("${env}", "/usr/bin/env", "env"):
        return
    rest = found.before[1:]
    while rest and re.match(r"[A-Za-z_]\w*=", rest[0]):
        name, _, value = rest.pop(0).partition("=")
        found.environment[name] = value
    found.before = rest


def _take_behind(sweep: Sweep, found: CommandLine, words: Sequence[str]) -> None:
    """Arguments with a value become static hyperparameters; other words stay behind all hyperparameters."""
    macros = [word[2:-1] for word in words if _MACRO.fullmatch(word)]
    if any("style" in ARGUMENTS.get(macro, {}) for macro in macros):
        _take_words(sweep, found, words)
        return
    for argument, value in _pairs(words):
        macro = _MACRO.fullmatch(argument)
        if macro is not None and macro["name"] in _ARGUMENTS:
            found.arguments = macro["name"]
        elif macro is not None:
            sweep.refuse(COMMAND, f"command has {argument} behind the program; leave it out there")
        elif value is not None and argument.lstrip("-") in found.static:
            sweep.refuse(COMMAND, f"command has {argument} twice; give it once")
        elif value is not None:
            found.static[argument.lstrip("-")] = _plain(value)
        elif argument.startswith("-") or found.arguments:
            found.flags.append(argument)
        else:
            sweep.refuse(
                COMMAND,
                f"command has {shown(argument)} between the program and its hyperparameters, where Warmband puts no "
                "word; give it behind ${args} if the program takes it there, or start the program by one of your own",
            )


def _take_words(sweep: Sweep, found: CommandLine, words: Sequence[str]) -> None:
    """Takes the words of a program that is not given `--name value`: its options stay behind the hyperparameters."""
    for word in words:
        macro = _MACRO.fullmatch(word)
        name, equals, value = word.partition("=")
        if macro is not None and macro["name"] in _ARGUMENTS:
            found.arguments = macro["name"]
        elif macro is not None:
            sweep.refuse(COMMAND, f"command has {word} behind the program; leave it out there")
        elif equals and re.fullmatch(r"[A-Za-z_][\w.]*", name) and "${args_no_hyphens}" in words:
            found.static[name] = _plain(value)
        else:
            found.flags.append(word)


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Arguments, each with its value if it has one: `--name value`, `--name=value` and `-n value`."""
    place = 0
    while place < len(words):
        word = words[place]
        behind = words[place + 1] if place + 1 < len(words) else None
        place += 1
        name, equals, value = word.partition("=")
        if re.fullmatch(r"--[\w.-]+", name) and equals:
            yield name, value
        elif re.fullmatch(r"--[\w.-]+|-[A-Za-z]", word) and behind is not None and _is_value(behind):
            place += 1
            yield word, behind
        else:
            yield word, None


def _is_value(word: str) -> bool:
    return (not word.startswith("-") and not _MACRO.search(word)) or bool(re.fullmatch(r"-\d+|-\d*\.\d+", word))


def _plain(text: str) -> Any:
    """A word as the number that is written like it, if there is one."""
    for kind in (int, float):
        try:
            if str(kind(text)) == text and kind(text) not in (float("inf"), float("-inf")):
                return kind(text)
        except ValueError:
            pass
    return text
