"""Values as text: in overrides of Hydra's, in YAML and in JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainers.errors import ConfigurationError


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
