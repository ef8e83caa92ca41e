"""`Page`: a report as one HTML file that needs no network, with its pictures as files."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup
from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from hpo.report.page.blocks import Code, Facts, Table, Text
from hpo.report.page.cells import cell, cells_of
from hpo.report.page.render import part, template
from hpo.report.palette import colours
from hpo.report.pictures import TEMPLATES, Figure

SHOWN_ROWS = 50
"""Rows of a table that are seen at first."""

SEARCHED_ROWS = 12
"""A table with more rows can be searched."""

FIRST = 'document.documentElement.classList.add("js");'
"""Runs before anything is laid out, so that rows beyond the first are not."""

Block = Text | Facts | Code | Table | Figure


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, with a heading and a place in its navigation.

    Args:
        title: the heading.
        blocks: what it holds, from top to bottom.
        note: what has to be known to read it, in a sentence or two.
    """

    title: str
    blocks: Sequence[Block]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A report.

    Args:
        title: its name.
        verdict: what came out, in a sentence with its figures.
        sections: its parts, in order.
        subtitle: what it is about, and as of when.
    """

    title: str
    verdict: str
    sections: Sequence[Section]
    subtitle: str = ""

    def html(self) -> str:
        """The page: complete, and everything in it that somebody named comes out as text."""
        shown = list(_shown(self.sections))
        figures = [block for section in shown for block in section["blocks"] if block["kind"] == "figure"]
        scripts = {"first": FIRST, "last": part("page.js"), "library": _plotly() if figures else ""}
        return template("page.html").render(
            page=self,
            sections=shown,
            scripts={name: Markup(script) for name, script in scripts.items()},
            allowed=" ".join(f"'{_digest(script)}'" for script in scripts.values() if script),
            style=Markup(colours() + part("page.css")),
            templates=inline(json.dumps(_templates())) if figures else "",
        )

    def write(self, path: str | Path) -> Path:
        """Writes the page to a file, over one that is there.

        Raises:
            OSError: it cannot be written.
        """
        file = Path(path)
        file.write_bytes(self.html().encode("utf-8", "replace"))  # half a surrogate pair has no UTF-8
        return file

    def write_pictures(self, folder: str | Path) -> list[Path]:
        """Writes each figure as PNG and SVG; one whose name is taken on this page gets a number.

        Raises:
            OSError: they cannot be written.
        """
        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        names = _Names()
        figures = [block for section in self.sections for block in section.blocks if isinstance(block, Figure)]
        return [path for figure in figures for path in replace(figure, name=names.new(figure.name)).save(into)]


def inline(text: str) -> Markup:
    """JSON for a script element of a page: no letter in it can end the element, or a line of JavaScript."""
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


class _Names:
    """Gives every part of a page an identifier of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, text: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"
        name, number = slug, 1
        while name in self._taken:
            number += 1
            name = f"{slug}-{number}"
        self._taken.add(name)
        return name


def _shown(sections: Sequence[Section]) -> Iterator[dict[str, Any]]:
    names = _Names()
    for section in sections:
        anchor = names.new(section.title)
        blocks = [{**_block(block), "id": names.new(f"{anchor} part")} for block in section.blocks]
        yield {"id": anchor, "title": section.title, "note": section.note, "blocks": blocks}


def _block(block: Block) -> dict[str, Any]:
    """A block in the form that the template takes."""
    if isinstance(block, Text):
        return {"kind": "text", "paragraphs": [part.strip() for part in re.split(r"\n\s*\n", block.text.strip())]}
    if isinstance(block, Facts):
        items = [(name, cell(value)) for name, value in block.items]
        return {"kind": "facts", "items": items, "caption": block.caption}
    if isinstance(block, Code):
        return {"kind": "code", "code": block}
    if isinstance(block, Table):
        return {"kind": "table", **_table(block)}
    return {"kind": "figure", "figure": block, "data": inline(_drawing(block))}


def _table(table: Table) -> dict[str, Any]:
    columns, rows = cells_of(table)
    numeric = [bool(rows) and all(row[place].number is not None for row in rows) for place in range(len(columns))]
    choices = {
        place: sorted({row[place].text for row in rows}) for place, column in enumerate(columns) if column.choose
    }
    return {
        "caption": table.caption,
        "columns": columns,
        "numeric": numeric,
        "errors": [max((len(row[place].error) for row in rows), default=0) for place in range(len(columns))],
        "rows": rows,
        "choices": {place: values for place, values in choices.items() if len(values) > 1},
        "searched": len(rows) > SEARCHED_ROWS,
        "shown": SHOWN_ROWS,
    }


def _drawing(figure: Figure) -> str:
    """Data and layout of each view; the page's script adds the template of the reader's colour scheme."""
    views = [view.to_plotly_json() for view in figure.views.values() or [figure.interactive]]
    for view in views:
        view["layout"].pop("template", None)
    return str(to_json_plotly([{"data": view["data"], "layout": view["layout"]} for view in views]))


def _templates() -> dict[str, Any]:
    return {scheme: colours.to_plotly_json() for scheme, colours in TEMPLATES.items()}


@cache
def _plotly() -> str:
    return str(get_plotlyjs())


def _digest(script: str) -> str:
    """The digest by which the page's policy knows a script: no other runs."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
