"""Placeholders in hyperparameters and command lines, such as `{checkpoints}`, `{hp:lr}` and `{data:train}`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

FOLDERS = ("checkpoints", "model", "output")
"""Placeholders of folders."""
_NAMED = ("hp", "data")
"""Placeholders that have a name behind a colon: of a hyperparameter, and of a channel."""
_PLACEHOLDER = re.compile(
    r"(?<!\$)(?:\{(?P<literal>\{[^\W\d]\w*(?::[^{}]+)?\})\}|\{(?P<name>[^\W\d]\w*)(?::(?P<of>[^{}]+))?\})"
)
"""Not `${name}`, which is a variable of a shell, of Hydra or of OmegaConf."""
_VARIABLE = re.compile(r"\$\{?SM_(CHECKPOINT_DIR|MODEL_DIR|OUTPUT_DATA_DIR|CHANNEL_(\w+))\b\}?")
_INSTEAD = {"CHECKPOINT_DIR": "{checkpoints}", "MODEL_DIR": "{model}", "OUTPUT_DATA_DIR": "{output}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fillings:
    """Values of placeholders.

    Args:
        folders: `checkpoints`, `model` and `output`.
        hyperparameters: by their names, of which `{hp:NAME}` are.
        channels: the folder of each channel.
    """

    folders: Mapping[str, str] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)

    def filled(self) -> dict[str, Any]:
        """The hyperparameters with their placeholders filled.

        Raises:
            ConfigurationError: naming the hyperparameter and a placeholder that has no value.
        """
        return {name: self._filled(name, value, (name,)) for name, value in self.hyperparameters.items()}

    def value(self, where: str, text: str, found: re.Match[str], within: tuple[str, ...] = ()) -> str:
        """The value of one placeholder.

        Args:
            where: names the text in errors.
            text: the whole text.
            found: the match.
            within: hyperparameters that are being filled.

        Raises:
            ConfigurationError: it has none.
        """
        check_placeholder(where, text, found, names=self.hyperparameters, channels=self.channels)
        name, of = found["name"], found["of"]
        if name in FOLDERS:
            return self.folders[name]
        if name == "data":
            return self.channels[of]
        if of in within:
            raise ConfigurationError(f"{where} is {text!r}, whose {found[0]} leads back to it; give the value itself")
        return _written(self._filled(of, self.hyperparameters[of], (*within, of)))

    def _filled(self, name: str, value: Any, within: tuple[str, ...]) -> Any:
        if isinstance(value, str):
            return replaced(f"hyperparameter {name!r}", value, self, {}, within)
        if isinstance(value, list | tuple):
            return [self._filled(name, each, within) for each in value]
        if isinstance(value, Mapping):
            return {key: self._filled(name, each, within) for key, each in value.items()}
        return value


def replaced(where: str, text: str, fillings: Fillings, also: Mapping[str, str], within: tuple[str, ...] = ()) -> str:
    """A text with its placeholders replaced, and doubled braces single.

    Args:
        where: names the text in errors.
        text: with placeholders.
        fillings: values of the trial's placeholders.
        also: values of others, by their names.
        within: hyperparameters that are being filled.

    Raises:
        ConfigurationError: a placeholder has no value.
    """

    def value(found: re.Match[str]) -> str:
        if found["literal"]:
            return str(found["literal"])
        if not is_placeholder(found):
            return found[0]
        if found["of"] is None and found["name"] in also:
            return also[found["name"]]
        return fillings.value(where, text, found, within)

    return _PLACEHOLDER.sub(value, text)


def check_placeholders(
    where: str,
    value: Any,
    *,
    names: Collection[str] | None = None,
    channels: Collection[str] | None = None,
    also: Collection[str] = (),
) -> None:
    """Refuse placeholders that do not exist, and variables that no program replaces.

    Args:
        where: names the value in errors.
        value: text, or lists and dicts of it.
        names: hyperparameters; None where they are not known.
        channels: likewise.
        also: further placeholders that there are.

    Raises:
        ConfigurationError: naming the placeholder and what to give.
    """
    if isinstance(value, list | tuple):
        for each in value:
            check_placeholders(where, each, names=names, channels=channels, also=also)
    elif isinstance(value, Mapping):
        for each in value.values():
            check_placeholders(where, each, names=names, channels=channels, also=also)
    if not isinstance(value, str):
        return
    for found in _PLACEHOLDER.finditer(value):
        if is_placeholder(found):
            check_placeholder(where, value, found, names=names, channels=channels, also=also)
    if variable := _VARIABLE.search(value):
        instead = _INSTEAD.get(variable[1], f"{{data:{(variable[2] or '').lower()}}}")
        raise ConfigurationError(
            f"{where} is {value!r}, and no shell puts the value of {variable[0]} there; give {instead} instead"
        )


def is_placeholder(found: re.Match[str]) -> bool:
    """Whether braces are meant as a placeholder: `{lr:0.1}` and `{a: 1}` are values of other languages."""
    name, of = found["name"], found["of"]
    return bool(name) and (of is None or name in _NAMED or bool(not of[0].isspace() and did_you_mean(name, _NAMED)))


def check_placeholder(
    where: str,
    text: str,
    found: re.Match[str],
    *,
    names: Collection[str] | None,
    channels: Collection[str] | None,
    also: Collection[str] = (),
) -> None:
    """Refuse one placeholder that does not exist; see `check_placeholders`.

    Args:
        where: names the text in errors.
        text: the whole text.
        found: the match.
        names: hyperparameters; None where they are not known.
        channels: likewise.
        also: further placeholders that there are.
    """
    name, of = found["name"], found["of"]
    known = {"hp": names, "data": channels}
    if of is None and name in (*FOLDERS, *also):
        return
    if of is not None and name in _NAMED:
        inner = known[name]
        if inner is None or of in inner:
            return
        what = "hyperparameter" if name == "hp" else "channel"
        there = ", ".join(f"{{{name}:{each}}}" for each in sorted(inner)) or f"no {what}s, so leave it out"
        raise ConfigurationError(
            f"{where} is {text!r}, and there is no {what} {of!r} for {found[0]}; give {there}{did_you_mean(of, inner)}"
        )
    usual = [*sorted((*FOLDERS, *also)), "hp:NAME", "data:CHANNEL"]
    near = did_you_mean(name, (*FOLDERS, *also, *_NAMED))
    raise ConfigurationError(
        f"{where} is {text!r}, and its placeholder {found[0]} is unknown; give "
        f"{', '.join(f'{{{each}}}' for each in usual)}, or double its braces to have it as it is{near}"
    )


def doubled(value: Any) -> Any:
    """A value whose braces would be placeholders, with these doubled, so that the program receives it as it is."""
    if isinstance(value, list):
        return [doubled(each) for each in value]
    if isinstance(value, dict):
        return {key: doubled(each) for key, each in value.items()}
    if not isinstance(value, str):
        return value

    def twice(found: re.Match[str]) -> str:
        return f"{{{found[0]}}}" if found["literal"] or is_placeholder(found) else found[0]

    return _PLACEHOLDER.sub(twice, value)


def placeholders_in(text: str) -> list[re.Match[str]]:
    """Matches of placeholders, and of doubled braces, in a text."""
    return list(_PLACEHOLDER.finditer(text))


def _written(value: Any) -> str:
    import json

    return json.dumps(value) if isinstance(value, list | dict | bool) or value is None else str(value)
