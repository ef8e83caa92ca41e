"""YAML of files that tests read and write, by YAML 1.2's rules."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML


def load(text: str) -> Any:
    """The values of a document."""
    return YAML(typ="safe", pure=True).load(text)


def load_all(text: str) -> Iterator[Any]:
    """The values of each document of a stream."""
    yield from YAML(typ="safe", pure=True).load_all(text)


def dump(value: Any) -> str:
    """A document of plain values."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    written = io.StringIO()
    yaml.dump(value, written)
    return written.getvalue()
