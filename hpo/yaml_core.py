"""YAML 1.2 with its core schema, as editors know it: `1e-3` is a number, `yes` and `2026-01-31` are text."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver

DEEPEST = 20
"""Levels of groups and lists that a file may nest."""

TAG = "tag:yaml.org,2002:"
"""Begin of the tags of YAML's own kinds of values."""

_PATTERNS = {
    "null": (r"~|null|Null|NULL|", "~nN\0"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
}
"""Plain text of each kind of value, and the characters it begins with; \\0 where it may be empty."""

_REMEDIES = {
    "mapping values are not allowed": "check the indentation, and quote text that holds a colon and a space",
    "'\\t'": "indent with spaces, not with tabs",
    "another document": "keep one document in a file: remove the line ---",
    "undefined alias": "quote text that begins with *",
    "cannot start any token": "quote text that begins with a sign",
    "duplicate key": "remove one of them",
}

_BY_FIRST: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _kind, (_pattern, _first) in _PATTERNS.items():
    for _character in _first:
        _BY_FIRST.setdefault(_character.strip("\0"), []).append((TAG + _kind, re.compile(rf"(?:{_pattern})\Z")))


class _CoreSchema(VersionedResolver):
    """Kinds of plain text by the core schema; ruamel's own add dates, merge keys, `=`, `0b1` and `1_000`."""

    @property
    def versioned_resolver(self) -> Any:
        return _BY_FIRST


def compose(text: str) -> Node | None:
    """The tree of a document, in which each node knows its place; None for an empty document.

    Raises:
        ValueError: it is not YAML; the message says where.
    """
    with _explained(text):
        node: Node | None = _yaml().compose(text)
    return node


def load(text: str) -> Any:
    """The values of a document.

    Raises:
        ValueError: it is not YAML, gives a key twice, or a value cannot be read; the message says where.
    """
    with _explained(text):
        return _yaml().load(text)


def flow(value: Any) -> str:
    """A value on one line, with brackets."""
    yaml = _yaml()
    yaml.default_flow_style = True
    yaml.allow_unicode = False  # A line separator would be read as a blank.
    yaml.width = sys.maxsize
    written = io.StringIO()
    yaml.dump(value, written)
    return written.getvalue().strip()


def _yaml() -> YAML:
    """A reader or writer of one document: an error leaves it half way through."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Resolver = _CoreSchema
    yaml.max_depth = 5 * DEEPEST  # Readers refuse what nests less deep with its place.
    yaml.composer.warn_double_anchors = False
    return yaml


@contextmanager
def _explained(text: str) -> Iterator[None]:
    """Turns ruamel's errors into a ValueError that says where the text is wrong."""
    try:
        yield
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f"line {line} holds the character {chr(error.character)!r}; remove it") from error
    except MaxDepthExceededError:
        raise ValueError(f"it nests deeper than {DEEPEST} levels") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context)
        remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in problem), "check brackets and quotes")
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{problem}; {remedy}") from error
    except (AssertionError, KeyError) as error:  # A directive %YAML of another version, and `!!bool maybe`.
        raise ValueError(f"{error}; leave directives and tags out") from error
