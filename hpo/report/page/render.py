"""Rendering of the templates beside this module, with every value escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

_TONES = {
    "Completed": "good",
    "Failed": "bad",
    "Diverged": "bad",
    "InProgress": "live",
    "Running": "live",
    "Paused": "live",
    "Pending": "live",
}
"""How a status is coloured; what is not here is calm."""


def template(name: str) -> Template:
    """A template by its file's name."""
    return _environment().get_template(name)


@cache
def part(name: str) -> str:
    """The content of a file beside this module."""
    return files("hpo.report.page").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(part), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["tone"] = lambda cell: _TONES.get(cell.text, "calm")
    return environment
