"""The figures of the documents are those of the results that are kept, and what cannot be filled is said."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import experiments.scale_out  # noqa: F401  # What all benchmarks import takes seconds, which are no test's.
from experiments import results_page
from experiments.results_page import Results, ResultsError, blocks, filled
from experiments.shared.benchmark import markdown
from tests.support.lines import line_with
from tests.support.refusals import refuses_each

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md"))]
KEPT = ROOT / "docs" / "results"

MACHINE = {
    "cores": 2,
    "memory_gb": 23.0,
    "load_at_the_end": [3.25, 1, 1],
    "platform": "Linux-6",
    "python": "3.11.9",
    "ray": "2.60.0",
}
RESULT = {"command": "python -m experiments.made --seeds 3", "date": "2026-11-22", "machine": MACHINE, "auc": 0.785}


def page_tables(result: dict[str, Any]) -> dict[str, str]:
    return {
        "found": markdown(("", "AUC"), [("here", f"{result['auc']:.3f}")]),
        "auc": f"{result['auc']:.2f}",
    }


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one result, of a benchmark that is made here."""
    module = ModuleType("experiments.made")
    module.page_tables = page_tables  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "experiments.made", module)
    folder = tmp_path / "results"
    folder.mkdir()
    keep(folder, RESULT)
    return folder


def keep(folder: Path, result: Any) -> None:
    (folder / "made-small.json").write_text(result if isinstance(result, str) else json.dumps(result))


PAGE = """# Page

<!-- table made-small.run -->
<!-- end -->

<!-- table made-small.found -->
| an old one |
<!-- end -->
Tuned, it is <!-- figure made-small.auc -->0.1<!-- end --> there.
"""


def test_blocks_are_filled_and_nothing_else_changes(kept: Path) -> None:
    made = filled(PAGE, Results(kept))
    assert made == (
        """# Page

<!-- table made-small.run -->

Measured on 2026-11-22 by `python -m experiments.made --seeds 3`: 2 cores, 23 GB, a load of 3.2 at the end, Linux-6, """
        """python 3.11.9, ray 2.60.0.

<!-- end -->

<!-- table made-small.found -->

| | AUC |
| --- | --- |
| here | 0.785 |

<!-- end -->
Tuned, it is <!-- figure made-small.auc -->0.79<!-- end --> there.
"""
    )
    assert filled(made, Results(kept)) == made


def test_what_is_wrong_with_a_page_is_said_with_its_line(kept: Path) -> None:
    run = "<!-- table made-small.run -->"
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("\n<!-- table none.run -->\n<!-- end -->", ("line 2", f"{kept}/none.json", "result.json")),
        ("<!-- table made-small.other -->\n<!-- end -->", ("line 1", "made-small", "'other'", "auc", "found", "run")),
        (f"{run}\n", ("line 1", run, "<!-- end -->")),
        (f"\n{run}\n<!-- table made-small.found -->\n<!-- end -->", ("line 2", run, "<!-- end -->")),
        ("\n<!-- end -->", ("line 2", "<!-- end -->")),
        ("<!-- table made-small -->\n<!-- end -->", ("line 1", "<!-- table NAME.TABLE -->")),
        ("so\n<!-- figure made-small.auc --><!-- end -->", ("line 2", "comment", "paragraph")),
        ("so <!-- figure made-small.found --><!-- end -->", ("line 1", "made-small.found", "table")),
    ]
    refuses_each([(lambda page=page: filled(page, Results(kept)), names) for page, names in cases], ResultsError)


def test_what_is_wrong_with_a_result_is_said(kept: Path) -> None:
    def read(result: Any) -> str:
        keep(kept, result)
        return filled(PAGE, Results(kept))

    cases: list[tuple[Any, tuple[str, ...]]] = [
        ('{"command": ', ("made-small.json", "JSON", "line 1", "result.json")),
        ([1], ("made-small.json", "command", "date", "machine")),
        ({**RESULT, "command": "python -m pytest"}, ("'python -m pytest'", "python -m experiments.MODULE")),
        ({**RESULT, "command": "python -m experiments.nowhere"}, ("made-small.json", "experiments.nowhere")),
        (
            {**RESULT, "command": "python -m experiments.second_backend"},
            ("experiments.second_backend.page_tables", "AttributeError"),
        ),
        ({**RESULT, "auc": None}, ("made-small.json", "experiments.made.page_tables")),
    ]
    refuses_each([(lambda result=result: read(result), names) for result, names in cases], ResultsError)


def test_the_command_fills_several_pages_or_says_all_that_is_wrong_and_changes_none(kept: Path, tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(results_page.main)
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_text(PAGE)
    second.write_text("<!-- table a.run --><!-- end -->\n<!-- table b.run --><!-- end -->")
    told = [str(first), str(second), str(kept)]
    failed = CliRunner().invoke(app, told)
    assert failed.exit_code == 1
    for name, number in (("a.json", 1), ("b.json", 2)):
        line_with(failed.output, "second.md", f"line {number}", name)
    assert first.read_text() == PAGE
    second.write_text("nothing")
    assert CliRunner().invoke(app, told).exit_code == 0
    assert first.read_text() == filled(PAGE, Results(kept))
    assert second.read_text() == "nothing"


# ---- the documents as they are


def test_the_pages_are_as_the_results_say() -> None:
    results = Results(KEPT)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert filled(text, results) == text, f"{page.name} is out of date: run `make docs`"


def test_every_result_that_is_kept_is_on_a_page() -> None:
    used = {block.name for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))}
    assert {path.name for path in KEPT.iterdir()} == {f"{name}.json" for name in used}


@pytest.mark.parametrize("path", sorted(KEPT.glob("*")), ids=lambda path: path.name)
def test_a_result_that_is_kept_is_small_and_names_no_place_of_a_machine(path: Path) -> None:
    assert path.stat().st_size < 150_000, "leave out of the result what no table is made of"
    assert not re.search(r'"(/[\w.-]+){2}', path.read_text(encoding="utf-8"))
    assert not re.search(r" (/|~|\.\.)\S+", json.loads(path.read_text(encoding="utf-8"))["command"])
