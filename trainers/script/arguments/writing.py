"""Writing of hyperparameters as a program reads them: words, variables and files."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from trainers.errors import ConfigurationError
from trainers.script.arguments.forms import SWITCH, Arguments, words_of
from trainers.script.arguments.texts import file_text, override_text
from trainers.script.program_options import ProgramOption, ProgramOptions

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
"""What Python's argparse takes for a negative number; all else that begins with a dash it takes for an option."""

_SYSTEM = "PATH HOME USER SHELL LANG TERM TMPDIR TMP TEMP PWD HOSTNAME DISPLAY EDITOR MAIL LOGNAME"
_LAUNCHERS = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT TF_CONFIG OMP_NUM_THREADS"
_RESERVED = frozenset(f"{_SYSTEM} {_LAUNCHERS}".split())
_RESERVED_BEGINS = ("SM_", "WARMBAND_", "RAY_", "PYTHON", "LD_", "LC_", "CUDA_", "NCCL_", "OMPI_", "PMI_", "SLURM_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a program is given.

    Args:
        words: behind its name.
        environment: variables of its own.
        files: texts of files in the folder of its configuration, by their names.
    """

    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def given_of(
    hyperparameters: Mapping[str, Any],
    arguments: Arguments | None = None,
    options: ProgramOptions | None = None,
    folder: str = "",
) -> Given:
    """All by which a program is given its hyperparameters.

    Args:
        hyperparameters: by their names, in the order of the command line.
        arguments: how they are written.
        options: that the program declares.
        folder: where its files are.

    Raises:
        ConfigurationError: a value is none that can be given so.
    """
    return _Writer(arguments or Arguments(), options or ProgramOptions(), folder).given(hyperparameters)


def arguments_of(
    hyperparameters: Mapping[str, Any],
    arguments: Arguments | None = None,
    options: ProgramOptions | None = None,
    folder: str = "",
) -> list[str]:
    """Hyperparameters as words of a command line: `["--lr", "0.1", "--nesterov", "True"]`; see `given_of`.

    A name of one letter has one dash, as on SageMaker. None is left out. A value that argparse would take for an
    option, such as -1e-05, is in one word with its name.
    """
    return list(given_of(hyperparameters, arguments, options, folder).words)


def check_arguments(
    hyperparameters: Mapping[str, Any], arguments: Arguments, options: ProgramOptions, program: str
) -> None:
    """Refuse values whose form on the command line nobody knows.

    Args:
        hyperparameters: some of a configuration's.
        arguments: how they are written.
        options: that the program declares.
        program: the name of its file; empty where it is not here, and so tells nothing.

    Raises:
        ConfigurationError: naming the hyperparameter and what to give.
    """
    writer = _Writer(arguments, options, "")
    for name, value in hyperparameters.items():
        if writer.on_command_line and (word := writer.bare_word(name)) and not isinstance(value, bool | None):
            raise ConfigurationError(
                f"hyperparameter {name!r} is {value!r}, and {word} of {program or 'the program'} stands alone, without "
                "a value; give True or False"
            )
        if program and isinstance(value, bool) and writer.on_command_line and not writer.knows_boolean(name):
            raise ConfigurationError(
                f"hyperparameter {name!r} is {value!r}, and the source of {program} does not tell how it takes True "
                f"and False; give arguments={{'booleans': {{{name!r}: FORM}}}} with one of the forms '--flag' (the "
                "option for True and nothing for False, which has to be the program's default), '--flag/--no-flag', "
                "'--flag true', '--flag=true', '--flag yes/no' for its option"
            )
    writer.given(hyperparameters)


class _Writer:
    """Writes the values of one program."""

    def __init__(self, arguments: Arguments, options: ProgramOptions, folder: str) -> None:
        self._arguments, self._options, self._folder = arguments, options, folder
        self._style = arguments.style or options.style or "--name value"
        self._overrides = self._style.endswith("name=value") and not self._style.startswith("--")

    @property
    def on_command_line(self) -> bool:
        """Whether values are options of a command line, for whose form there are many habits."""
        return self._style not in ("environment", "file") and self._dialect not in ("hydra", "yaml")

    @property
    def _dialect(self) -> str:
        """The language of `name=value`; empty of other styles."""
        parsers = self._options.parsers
        if not self._overrides:
            return ""
        if "hydra" in parsers or not (parsers or self._options.reads_words):
            return "hydra"
        return "yaml" if "omegaconf" in parsers else "words"

    def given(self, hyperparameters: Mapping[str, Any]) -> Given:
        """See `given_of`."""
        values = dict(hyperparameters)
        for name, value in values.items():
            self._check_word(name, value)
        first, last = self._positional(values)
        named = {name: value for name, value in values.items() if name not in self._positions(values)}
        environment: dict[str, str] = {}
        files: dict[str, str] = {}
        ahead: list[str] = []
        words: list[str] = []
        if self._style == "environment":
            environment = dict(self._variables(named))
        elif self._style == "file":
            name = self._arguments.file["name"]
            files = {name: file_text(name, named)}
            words += _with_option(self._arguments.file.get("option", ""), os.path.join(self._folder, name))
        else:
            environment = {} if self._arguments.style else dict(self._read_variables(named))
            for name, value in named.items():
                into = ahead if first and self._before_command(name) else words
                into += self._named(name, value)
        return Given(words=(*ahead, *first, *words, *last), environment=environment, files=files)

    def knows_boolean(self, name: str) -> bool:
        """Whether the form of a boolean is told, or the program reads it in another way than by its words."""
        read = self._options
        silent = not read.parsers and not read.reads_words and not read.options
        variable = bool({name, _capitals(name)} & read.variables)
        return bool(self._boolean(name)) or name in self._arguments.positional or (silent and (read.typed or variable))

    def bare_word(self, name: str) -> str:
        """The word of an option that stands alone; empty for others, and where the user says another form."""
        option = self._option(name)
        if option is None or not option.bare or _form(self._arguments.booleans, name):
            return ""
        return self._spelled(name)

    def _check_word(self, name: object, value: Any) -> None:
        """Refuse what an operating system does not take as an argument and as a variable."""
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise ConfigurationError(
                f"hyperparameter {name!r} cannot be an argument of a program; give a name that is not empty, without "
                "'='"
            )
        if name.startswith("-") and self._style.startswith("--"):
            raise ConfigurationError(
                f"hyperparameter {name!r} begins with a dash, which Warmband puts there; give {name.lstrip('-')!r}"
            )
        if isinstance(value, str) and "\0" in value:
            raise ConfigurationError(
                f"hyperparameter {name!r} is {value!r}, which ends an argument in its midst; give text without '\\0'"
            )

    # ---- names

    def _option(self, name: str) -> ProgramOption | None:
        return self._options.find(name)

    def _spelled(self, name: str) -> str:
        option = self._option(name)
        if option is not None and option.options:
            return option.spelled(name)
        return f"-{name}" if len(name) == 1 and self._style == "--name value" else f"--{name}"

    def _positions(self, values: Mapping[str, Any]) -> list[str]:
        """Hyperparameters that are given without their names, in order."""
        if self._arguments.positional or self._overrides:
            return [name for name in self._arguments.positional if name in values]
        declared = [each.name for each in self._options.options if each.positional]
        found = {name: option.name for name in values if (option := self._option(name)) and option.positional}
        return sorted(found, key=lambda name: declared.index(found[name]))

    def _positional(self, values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Words of values alone: those that stand first, or else last behind `--`, where one looks like an option."""
        words: list[str] = []
        for name in self._positions(values):
            value = values[name]
            if value is None:
                continue
            words += map(_text, value) if isinstance(value, list) else [self._truth(name, value)]
        if any(word.startswith("-") and not _NEGATIVE.fullmatch(word) for word in words):
            return [], ["--", *words]
        return words, []

    def _truth(self, name: str, value: Any) -> str:
        if not isinstance(value, bool):
            return _text(value)
        pair = words_of(self._boolean(name))
        return str(value) if pair is None else pair[1 - value]

    def _before_command(self, name: str) -> bool:
        """Whether an option is the program's own, where a subcommand's options stand behind its name."""
        option = self._option(name)
        subcommands = any(each.command for each in self._options.options)
        return subcommands and option is not None and not option.command

    # ---- values

    def _named(self, name: str, value: Any) -> list[str]:
        if self._overrides:
            return [f"{self._style.removesuffix('name=value')}{name}={self._override(name, value)}"]
        if value is None:
            return []
        option = self._spelled(name)
        if isinstance(value, bool):
            return self._boolean_words(name, option, value)
        if isinstance(value, list):
            return self._list_words(name, option, value)
        return self._one(option, _text(value))

    def _one(self, option: str, text: str, sign: str = "") -> list[str]:
        """An option and its value, in one word where the value looks like an option or the style has it so."""
        joined = text.startswith("-") and not _NEGATIVE.fullmatch(text)
        short = not option.startswith("--") and len(option) == 2
        if sign == "=" or joined or self._style == "--name=value":
            if short:
                return [f"{option}{text}"] if text else [option, text]
            return [f"{option}={text}"]
        return [option, text]

    def _boolean(self, name: str) -> str:
        """The form of a boolean; empty where nothing tells."""
        if form := _form(self._arguments.booleans, name):
            return form
        option = self._option(name)
        return option.boolean if option is not None else self._options.boolean

    def _boolean_words(self, name: str, option: str, value: bool) -> list[str]:
        form = self._boolean(name)
        declared = self._option(name)
        if pair := words_of(form or "--flag True"):
            sign = form.removeprefix("--flag")[:1]
            return self._one(option, pair[1 - value], sign)
        switch = SWITCH.fullmatch(form)
        assert switch is not None, "forms are checked"
        if not isinstance(self._arguments.booleans, str) and name in self._arguments.booleans:
            declared = None
        if declared is not None and declared.stored is False and name.replace("-", "_") == declared.name:
            value = not value
        word = switch["on"] if value else switch["off"]
        return [] if word is None else [_for(word, option)]

    def _list_form(self, name: str) -> str:
        if form := _form(self._arguments.lists, name):
            return form
        option = self._option(name)
        return (option.list if option is not None else self._options.list) or "json"

    def _list_words(self, name: str, option: str, value: list[Any]) -> list[str]:
        form = self._list_form(name)
        if form == "json":
            return self._one(option, json.dumps(value))
        texts = [_text(each) for each in value]
        if form == "repeated":
            return [word for text in texts for word in self._one(option, text)]
        if form == "words":
            pairs = zip(value, texts, strict=True)
            return [option, *(_unlike_options(name, value, each, text) for each, text in pairs)]
        separator = "," if form == "comma" else " "
        for text in texts:
            if separator in text:
                raise ConfigurationError(
                    f"hyperparameter {name!r} is {value!r}, and {text!r} has a {separator!r} within a list that is "
                    "written with it; give arguments={'lists': 'json'} or 'words' if the program takes that"
                )
        return self._one(option, separator.join(texts))

    def _override(self, name: str, value: Any) -> str:
        """A value of Hydra's or OmegaConf's language."""
        dialect = self._dialect
        if dialect == "words":
            if isinstance(value, bool):
                pair = words_of(self._boolean(name) or "--flag True") or ("true", "false")
                return pair[1 - value]
            return "" if value is None else _text(value)
        try:
            return override_text(value, yaml=dialect == "yaml")
        except ConfigurationError as error:
            raise ConfigurationError(f"hyperparameter {name!r} is {value!r}: {error}") from None

    def _variables(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Variables of the names as they are given, and in capitals; those of the system and of launchers stay."""
        capitals: dict[str, str] = {}
        for name, value in values.items():
            if value is None:
                continue
            text = json.dumps(value) if isinstance(value, list | dict) else self._truth(name, value)
            if _is_reserved(name):
                raise ConfigurationError(
                    f"hyperparameter {name!r} is a variable that launchers or the system set; give it another name, or "
                    f"let the program read SM_HP_{name.upper()}"
                )
            upper = _capitals(name)
            if upper != name and not _is_reserved(upper) and upper not in values:
                capitals[upper] = text
            yield name, text
        yield from capitals.items()

    def _read_variables(self, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Variables that the program's source reads by the names of hyperparameters, beside its command line."""
        read = {name: value for name, value in values.items() if not _is_reserved(name)}
        return ((name, text) for name, text in self._variables(read) if name in self._options.variables)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def _unlike_options(name: str, whole: list[Any], value: Any, text: str) -> str:
    """A word in a list of words, none of which may look like an option."""
    if not text.startswith("-") or _NEGATIVE.fullmatch(text):
        return text
    if isinstance(value, float) and math.isfinite(value):
        return format(Decimal(text), "f")
    raise ConfigurationError(
        f"hyperparameter {name!r} is {whole!r}, and {text!r} looks like an option where a list is written as words; "
        "give arguments={'lists': 'repeated'}, 'comma' or 'json' if the program takes that"
    )


def _with_option(option: str, path: str) -> list[str]:
    if not option:
        return [path]
    return [f"{option}{path}"] if option.endswith("=") else [option, path]


def _capitals(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _is_reserved(name: str) -> bool:
    return name in _RESERVED or name.startswith(_RESERVED_BEGINS)


def _form(forms: str | Mapping[str, str], name: str) -> str:
    """Return the form that the user gives for a hyperparameter, or for all of them; empty if there is none."""
    return forms if isinstance(forms, str) else forms.get(name, "")


def _for(word: str, option: str) -> str:
    """An option's own word, for the placeholder `flag` of a form."""
    bare = option.lstrip("-")
    return {"--flag": option, "--no-flag": f"--no-{bare}", "--noflag": f"--no{bare}"}.get(word, word)
