"""Arguments of a program: how hyperparameters are written on its command line, in variables or in a file."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.script.program_options import ProgramOption, ProgramOptions

STYLES = ("--name value", "--name=value", "name=value", "+name=value", "++name=value", "environment", "file")
"""Ways in which a program is given values."""
LISTS = ("words", "repeated", "comma", "spaces", "json")
"""Forms of lists: words of their own, the option anew for each, one word with commas, with spaces, or of JSON."""
KEYS = ("style", "booleans", "lists", "positional", "file")

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
"""What Python's argparse takes for a negative number; all else that begins with a dash it takes for an option."""
_SWITCH = re.compile(r"(?P<on>-{1,2}[^\s=/]+)?(?:/(?P<off>-{1,2}[^\s=/]+)?)?")
_VALUED = re.compile(r"--flag(?P<sign>[ =])(?P<on>[^/]*?)(?:/(?P<off>.*))?")
_OPPOSITES = {"true": "false", "True": "False", "TRUE": "FALSE", "1": "0", "yes": "no", "on": "off", "y": "n", "t": "f"}
_SYSTEM = "PATH HOME USER SHELL LANG TERM TMPDIR TMP TEMP PWD HOSTNAME DISPLAY EDITOR MAIL LOGNAME"
_LAUNCHERS = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT TF_CONFIG OMP_NUM_THREADS"
_RESERVED = frozenset(f"{_SYSTEM} {_LAUNCHERS}".split())
_RESERVED_BEGINS = ("SM_", "WARMBAND_", "RAY_", "PYTHON", "LD_", "LC_", "CUDA_", "NCCL_", "OMPI_", "PMI_", "SLURM_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """How hyperparameters reach a program.

    Args:
        style: one of `STYLES`; empty: as the program's source says, else "--name value".
        booleans: a form of True and False for all of them, or by name; others are given as the source declares them.
            "--flag" is the option or nothing, "--flag/--no-flag" one of two options, "--flag true", "--flag=true" and
            "--flag yes/no" a value.
        lists: likewise one of `LISTS`.
        positional: hyperparameters that are given as values alone, in this order.
        file: of style "file", `name` (config.yaml or config.json) and `option`, the word before its path.
    """

    style: str = ""
    booleans: str | Mapping[str, str] = ""
    lists: str | Mapping[str, str] = ""
    positional: tuple[str, ...] = ()
    file: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: object) -> Arguments:
        """Read what a user gave: None, a style, or a mapping with these keys.

        Raises:
            ConfigurationError: naming what is wrong and what to give.
        """
        if given is None:
            return cls()
        if isinstance(given, str):
            return cls._checked({"style": given})
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                f"arguments is {given!r}; give one of {_listed(STYLES)}, or a dict with {', '.join(KEYS)}"
            )
        return cls._checked(given)

    @classmethod
    def _checked(cls, given: Mapping[str, Any]) -> Arguments:
        for key in given:
            if key not in KEYS:
                near = did_you_mean(key, KEYS)
                raise ConfigurationError(f"arguments has {key!r}; give {', '.join(KEYS)}{near}")
        style, positional, file = given.get("style", ""), given.get("positional") or (), given.get("file") or {}
        if "style" in given and style not in STYLES:
            raise ConfigurationError(
                f"arguments is {style!r}; give one of {_listed(STYLES)}{did_you_mean(style, STYLES, 0.5)}"
            )
        _check_forms("booleans", given.get("booleans"), _check_boolean)
        _check_forms("lists", given.get("lists"), _check_list)
        if not isinstance(positional, list | tuple) or not all(isinstance(each, str) and each for each in positional):
            raise ConfigurationError(
                f"arguments has positional {positional!r}; give a list of hyperparameters' names, such as ['data']"
            )
        return cls(
            style=style,
            booleans=_frozen(given.get("booleans")),
            lists=_frozen(given.get("lists")),
            positional=tuple(positional),
            file=_checked_file(style, file),
        )

    def to_json(self) -> str | dict[str, Any] | None:
        """What `of` makes the same of; None where nothing was said."""
        values: dict[str, Any] = {
            "style": self.style,
            "booleans": dict(self.booleans) if isinstance(self.booleans, Mapping) else self.booleans,
            "lists": dict(self.lists) if isinstance(self.lists, Mapping) else self.lists,
            "positional": list(self.positional),
            "file": dict(self.file),
        }
        said = {name: value for name, value in values.items() if value}
        return said["style"] if said.keys() == {"style"} else said or None


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
    for name, value in plain(hyperparameters).items():
        if program and isinstance(value, bool) and writer.on_command_line and not writer.knows_boolean(name):
            raise ConfigurationError(
                f"hyperparameter {name!r} is {value!r}, and the source of {program} does not tell how it takes True "
                f"and False; give arguments={{'booleans': {{{name!r}: FORM}}}} with one of the forms '--flag' (the "
                "option or nothing), '--flag/--no-flag', '--flag true', '--flag=true', '--flag yes/no' for its option"
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
        values = plain(hyperparameters)
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
        pair = _pair(self._boolean(name))
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
        forms = self._arguments.booleans
        if isinstance(forms, str) and forms:
            return forms
        if not isinstance(forms, str) and name in forms:
            return forms[name]
        option = self._option(name)
        return option.boolean if option is not None else self._options.boolean

    def _boolean_words(self, name: str, option: str, value: bool) -> list[str]:
        form = self._boolean(name)
        declared = self._option(name)
        if pair := _pair(form or "--flag True"):
            sign = form.removeprefix("--flag")[:1]
            return self._one(option, pair[1 - value], sign)
        switch = _SWITCH.fullmatch(form)
        assert switch is not None, "forms are checked"
        if not isinstance(self._arguments.booleans, str) and name in self._arguments.booleans:
            declared = None
        if declared is not None and declared.stores_false and name.replace("-", "_") == declared.name:
            value = not value
        word = switch["on"] if value else switch["off"]
        return [] if word is None else [_for(word, option)]

    def _list_form(self, name: str) -> str:
        forms = self._arguments.lists
        if isinstance(forms, str) and forms:
            return forms
        if not isinstance(forms, str) and name in forms:
            return forms[name]
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
                pair = _pair(self._boolean(name) or "--flag True") or ("true", "false")
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


def check_names(names: Collection[str], arguments: Arguments) -> None:
    """Refuse names in `booleans`, `lists` and `positional` that no hyperparameter has.

    Args:
        names: of all hyperparameters, fixed and tuned.
        arguments: how they are written.

    Raises:
        ConfigurationError: naming one and the nearest hyperparameter.
    """
    given = {
        "booleans": arguments.booleans if isinstance(arguments.booleans, Mapping) else (),
        "lists": arguments.lists if isinstance(arguments.lists, Mapping) else (),
        "positional": arguments.positional,
    }
    for key, those in given.items():
        for name in those:
            if name not in names:
                there = ", ".join(names) or "none"
                raise ConfigurationError(
                    f"arguments has {key} with {name!r}, which is no hyperparameter; there are {there}"
                    f"{did_you_mean(name, names)}"
                )


def plain(hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """Hyperparameters as JSON has them: NumPy's numbers become Python's, and paths strings.

    Args:
        hyperparameters: by their names.

    Raises:
        ConfigurationError: naming the one that JSON cannot have.
    """
    return {name: _plain(name, value) for name, value in hyperparameters.items()}


def _plain(name: str, value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str() if type(value).__module__ == "builtins":
            return value
        case np.generic() | np.ndarray():
            return _plain(name, value.tolist())
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str(value)
        case os.PathLike():
            return os.fspath(value)
        case list() | tuple():
            return [_plain(name, each) for each in value]
        case Mapping():
            return {str(key): _plain(name, each) for key, each in value.items()}
    raise ConfigurationError(
        f"hyperparameter {name!r} is {value!r}, which a program cannot be given; give a number, a string, True, False, "
        "None, or lists and dicts of them"
    )


# ---- texts


def override_text(value: Any, *, yaml: bool) -> str:
    """A value in Hydra's language of overrides, or in YAML on one line, as OmegaConf reads it.

    Args:
        value: plain.
        yaml: in YAML.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            word = "nan" if math.isnan(value) else "inf"
            return f"{'-' if value < 0 else ''}{'.' if yaml else ''}{word}"
        case int() | float():
            return repr(value)
        case list():
            return f"[{','.join(override_text(each, yaml=yaml) for each in value)}]"
        case dict():
            inner = (f"{_key(str(key), yaml)}: {override_text(each, yaml=yaml)}" for key, each in value.items())
            return f"{{{','.join(inner)}}}"
    return _quoted(str(value), yaml)


_BARE = re.compile(r"[A-Za-z_/][\w/.+-]*", re.ASCII)
_NOT_TEXT = ("true", "false", "null", "none", "yes", "no", "on", "off", "y", "n", "nan", "inf")


def _key(text: str, yaml: bool) -> str:
    """A key within a value; Hydra takes none in quotes.

    Raises:
        ConfigurationError: Hydra would read something else.
    """
    if yaml or (_BARE.fullmatch(text) and "/" not in text and text.lower() not in _NOT_TEXT):
        return _quoted(text, yaml)
    raise ConfigurationError(
        f"a dict with the key {text!r} cannot be an override of Hydra's; give its entries as hyperparameters of their "
        "own, with a dot before each key"
    )


def _quoted(text: str, yaml: bool) -> str:
    """Text as text, whatever it looks like."""
    if _BARE.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    if text.isprintable() and not set(text) & {"'", "\\"}:
        return f"'{text}'"
    if yaml:
        return _yaml_text(text)
    inner = re.sub(r"(\\*)'", lambda found: found[1] * 2 + "\\'", text)
    return "'" + re.sub(r"(\\+)\Z", lambda found: found[1] * 2, inner) + "'"


def file_text(name: str, hyperparameters: Mapping[str, Any]) -> str:
    """A file of hyperparameters; a name with dots is a key within groups.

    Args:
        name: of the file, which says whether it is JSON or YAML.
        hyperparameters: plain.

    Raises:
        ConfigurationError: a name is a value and a group.
    """
    tree: dict[str, Any] = {}
    for dotted, value in hyperparameters.items():
        *outer, last = dotted.split(".")
        group = tree
        for key in outer:
            group = group.setdefault(key, {})
            if not isinstance(group, dict):
                raise ConfigurationError(f"hyperparameter {dotted!r} is within {key!r}, which has a value of its own")
        if isinstance(group.get(last), dict):
            raise ConfigurationError(f"hyperparameter {dotted!r} has a value, and is a group of others, too")
        group[last] = value
    if name.endswith(".json"):
        return json.dumps(tree, indent=2) + "\n"
    return "".join(_yaml_lines(tree, "")) or "{}\n"


def _yaml_lines(group: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in group.items():
        written = key if _BARE.fullmatch(key) and key.lower() not in _NOT_TEXT else _yaml_text(key)
        if isinstance(value, dict) and value:
            yield f"{indent}{written}:\n"
            yield from _yaml_lines(value, f"{indent}  ")
        else:
            yield f"{indent}{written}: {_yaml_value(value)}\n"


def _yaml_value(value: Any) -> str:
    """A value that YAML 1.1 and 1.2 read alike, on one line."""
    match value:
        case str():
            return _yaml_text(value)
        case float() if math.isfinite(value):
            mantissa, e, exponent = repr(value).partition("e")  # YAML 1.1 takes 1e-05 for text.
            point = "" if "." in mantissa else ".0"
            sign = "" if not e or exponent.startswith(("+", "-")) else "+"
            return f"{mantissa}{point}{e}{sign}{exponent}"
        case list():
            return f"[{', '.join(map(_yaml_value, value))}]"
        case dict():
            return f"{{{', '.join(f'{_yaml_text(str(key))}: {_yaml_value(each)}' for key, each in value.items())}}}"
    return override_text(value, yaml=True)


def _yaml_text(text: str) -> str:
    """Text in double quotes, with YAML's escapes."""

    def escaped(character: str) -> str:
        if character in '"\\':
            return f"\\{character}"
        code = ord(character)
        if character.isprintable() and code <= 0xFFFF:
            return character
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

    return f'"{"".join(map(escaped, text))}"'


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


def _pair(form: str) -> tuple[str, str] | None:
    """Words for True and False of a form that has a value; None of switches."""
    found = _VALUED.fullmatch(form)
    if found is None:
        return None
    on, off = (_unquoted(found[side]) for side in ("on", "off"))
    return on or "", _OPPOSITES[on or ""] if off is None else off


def _unquoted(word: str | None) -> str | None:
    return word if word is None else "".join(shlex.split(word)) if word[:1] in "\"'" else word


def _for(word: str, option: str) -> str:
    """An option's own word, for the placeholder `flag` of a form."""
    bare = option.lstrip("-")
    return {"--flag": option, "--no-flag": f"--no-{bare}", "--noflag": f"--no{bare}"}.get(word, word)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words))


def _frozen(forms: Any) -> str | dict[str, str]:
    return dict(forms) if isinstance(forms, Mapping) else forms or ""


def _check_forms(key: str, given: Any, check: Any) -> None:
    if given is None:
        return
    if isinstance(given, Mapping):
        for name, form in given.items():
            check(f"{key} with {name!r}: {form!r}", form)
    else:
        check(f"{key} {given!r}", given)


def _check_boolean(where: str, form: Any) -> None:
    pair = None
    if isinstance(form, str) and form:
        switch = _SWITCH.fullmatch(form)
        found = _VALUED.fullmatch(form)
        pair = switch and (switch["on"] or switch["off"])
        if found is not None:
            pair = found["off"] is not None or found["on"] in _OPPOSITES
    if not pair:
        raise ConfigurationError(
            f"arguments has {where}; give '--flag', '--flag/--no-flag', '--flag true', '--flag=true' or a pair such as "
            "'--flag yes/no', or a dict of names and these"
        )


def _check_list(where: str, form: Any) -> None:
    if form not in LISTS:
        raise ConfigurationError(
            f"arguments has {where}; give one of {_listed(LISTS)}, or a dict of names and these"
            f"{did_you_mean(form, LISTS)}"
        )


def _checked_file(style: str, file: Any) -> dict[str, str]:
    wanted = "give {'name': 'config.yaml', 'option': '--config'}"
    if style != "file":
        if file:
            raise ConfigurationError(
                f"arguments has file {file!r} with style {style!r}; give style 'file', or leave it out"
            )
        return {}
    if not isinstance(file, Mapping) or not {"name"} <= file.keys() <= {"name", "option"}:
        raise ConfigurationError(f"arguments has file {file!r}; {wanted}")
    name, option = file["name"], file.get("option", "")
    right = isinstance(name, str) and Path(name).name == name and name.endswith((".yaml", ".yml", ".json"))
    if not right or not isinstance(option, str):
        raise ConfigurationError(f"arguments has file {dict(file)!r}; {wanted}, the name without folders")
    return {"name": name, **({"option": option} if option else {})}
