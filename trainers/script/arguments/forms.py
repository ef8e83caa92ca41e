"""`Arguments`: the forms in which a program is given values, as a user says them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

STYLES = ("--name value", "--name=value", "name=value", "+name=value", "++name=value", "environment", "file")
"""Ways in which a program is given values."""
LISTS = ("words", "repeated", "comma", "spaces", "json")
"""Forms of lists: words of their own, the option anew for each, one word with commas, with spaces, or of JSON."""
KEYS = ("style", "booleans", "lists", "positional", "file")

SWITCH = re.compile(r"(?P<on>-{1,2}[^\s=/]+)?(?:/(?P<off>-{1,2}[^\s=/]+)?)?")
_VALUED = re.compile(r"--flag(?P<sign>[ =])(?P<on>[^/]*?)(?:/(?P<off>.*))?")
_OPPOSITES = {"true": "false", "True": "False", "TRUE": "FALSE", "1": "0", "yes": "no", "on": "off", "y": "n", "t": "f"}


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


def words_of(form: str) -> tuple[str, str] | None:
    """Words for True and False of a form that has a value; None of switches."""
    found = _VALUED.fullmatch(form)
    if found is None:
        return None
    on, off = (_unquoted(found[side]) for side in ("on", "off"))
    return on or "", _OPPOSITES[on or ""] if off is None else off


def _unquoted(word: str | None) -> str | None:
    return word if word is None else "".join(shlex.split(word)) if word[:1] in "\"'" else word


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
        switch = SWITCH.fullmatch(form)
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
