"""The figures of the documents, made by `make docs` from the results of benchmarks.

    python -m experiments.results_page docs/background/benchmarks.md docs/results

A benchmark's result.json is kept as docs/results/NAME.json: NAME is its module, with a word behind a hyphen where one
module is run in several ways, such as `tune_distributed-xgboost`. A page asks for what is made from it by a pair of
markers,

    <!-- table NAME.TABLE -->
    <!-- end -->

and the function `page_tables(result)` of the module that the result's own command names makes it: markdown by name,
from what the file holds alone. Every result also has the table `run`, which says in a line how, when and where it was
measured. Within a paragraph, and not where a line begins, a table that is one line of text is held by
`<!-- figure NAME.TABLE --><!-- end -->`.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

MARKER = re.compile(r"<!--[ ]*(?:(table|figure|house)\b(.*?)|end[ ]*)-->", re.DOTALL)
BLOCK = re.compile(r"([\w-]+)\.([\w-]+)")
COMMAND = re.compile(r"python -m (experiments\.\w+)( |$)")
RUN = "run"


class ResultsError(ValueError):
    """A page cannot be filled; says where, and what is to be done."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A place of a page that is filled.

    Args:
        kind: "table" or "figure".
        name: of the result.
        table: of those that are made from it.
        line: of the page, where it begins.
        inside: where what it holds begins and ends.
    """

    kind: str
    name: str
    table: str
    line: int
    inside: slice


class Results:
    """The results of a folder, each read when it is first asked for.

    Args:
        folder: holds them as NAME.json.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, dict[str, str]] = {}

    def text(self, name: str, table: str) -> str:
        """What is made of a result.

        Raises:
            ResultsError: there is no such result, it is none, or there is no such table of it.
        """
        if name not in self._made:
            self._made[name] = self._read(name)
        if table not in self._made[name]:
            raise ResultsError(f"{name} has no table {table!r}; it has {', '.join(sorted(self._made[name]))}")
        return self._made[name][table]

    def _read(self, name: str) -> dict[str, str]:
        path = self._folder / f"{name}.json"
        if not path.is_file():
            raise ResultsError(f"{path} is not there; run the benchmark and keep its result.json under that name")
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ResultsError(f"{path} is no JSON: {error}; keep the benchmark's result.json as it is") from None
        if not isinstance(result, dict) or not {"command", "date", "machine"} <= result.keys():
            raise ResultsError(f"{path} has no command, date and machine; run the benchmark anew")
        command = COMMAND.match(str(result["command"]))
        if command is None:
            raise ResultsError(f"{path}: the command {result['command']!r} is none of `python -m experiments.MODULE`")
        return {**_tables(path, command[1], result), RUN: ran(result)}


def filled(page: str, results: Results) -> str:
    """A page with all its blocks filled anew; what stands outside of them stays.

    Raises:
        ResultsError: all that is wrong, a line each.
    """
    parts, wrong, end = [], [], 0
    for block in blocks(page):
        try:
            text = results.text(block.name, block.table).strip()
            if block.kind == "figure" and "\n" in text:
                raise ResultsError(f"{block.name}.{block.table} is more than a line; ask for it as a table")
        except ResultsError as error:
            wrong.append(f"line {block.line}: {error}")
            continue
        parts += [page[end : block.inside.start], text if block.kind == "figure" else f"\n\n{text}\n\n"]
        end = block.inside.stop
    if wrong:
        raise ResultsError("\n".join(wrong))
    return "".join([*parts, page[end:]])


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in their order.

    Raises:
        ResultsError: a marker is misspelt, stands where it cannot, or its partner is missing.
    """
    found, markers = [], list(MARKER.finditer(page))
    for opened, closed in zip_longest(markers[::2], markers[1::2]):
        line = page.count("\n", 0, opened.start()) + 1
        kind, name = opened[1], BLOCK.fullmatch((opened[2] or "").strip())
        if kind == "house" and closed is not None and closed[1] is None:
            continue  # Filled by docs/house.py.
        if kind is None:
            raise ResultsError(f"line {line}: {opened[0]} without a block before it; remove it")
        if name is None:
            raise ResultsError(f"line {line}: {opened[0]} names no table; write <!-- {kind} NAME.TABLE -->")
        if kind == "figure" and not page[: opened.start()].rpartition("\n")[2].strip():
            raise ResultsError(f"line {line}: a comment that begins a line ends its paragraph; put a word before it")
        if closed is None or closed[1] is not None:
            raise ResultsError(f"line {line}: {opened[0]} is not closed; write <!-- end --> behind it")
        inside = slice(opened.end(), closed.start())
        found.append(Block(kind=kind, name=name[1], table=name[2], line=line, inside=inside))
    return found


def ran(result: Mapping[str, Any]) -> str:
    """How, when and where a result was measured, in a line."""
    machine = dict(result["machine"])
    load = machine.pop("load_at_the_end", None)
    said = [
        f"{machine.pop('cores')} cores",
        f"{machine.pop('memory_gb'):g} GB",
        *([f"a load of {load[0]:.1f} at the end"] if load else []),
        str(machine.pop("platform")),
        *(f"{program} {version}" for program, version in machine.items()),
    ]
    return f"Measured on {result['date']} by `{result['command']}`: {', '.join(said)}."


def _tables(path: Path, module: str, result: Mapping[str, Any]) -> dict[str, str]:
    """What the benchmark's own module makes of a result."""
    try:
        made: dict[str, str] = importlib.import_module(module).page_tables(result)
    except ImportError as error:
        raise ResultsError(f"{path}: its command's module, {module}, cannot be imported: {error}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ResultsError(
            f"{path}: {module}.page_tables cannot make its tables ({what}); if the benchmark writes other results now, "
            "run it anew"
        ) from error
    return made


def main(
    pages: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Pages to fill.")],
    results: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of the results.")],
) -> None:
    """Fill the blocks of pages from the results of benchmarks; where anything is wrong, no page is changed."""
    read = Results(results)
    made, wrong = {}, []
    for page in pages:
        before = page.read_text(encoding="utf-8")
        try:
            after = filled(before, read)
        except ResultsError as error:
            wrong += [f"{page}, {line}" for line in str(error).splitlines()]
            continue
        if after != before:
            made[page] = after
    if wrong:
        raise SystemExit("\n".join(wrong))
    for page, text in made.items():
        page.write_text(text, encoding="utf-8")
        print(f"{page} is written anew")


if __name__ == "__main__":
    typer.run(main)
