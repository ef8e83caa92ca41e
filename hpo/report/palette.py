"""Colours of pages, light and dark, as variables of CSS: one file for the report and for the console."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def colours() -> str:
    """The content of `colours.css`, in which alone colours of pages are defined."""
    return files("hpo.report").joinpath("colours.css").read_text(encoding="utf-8")
