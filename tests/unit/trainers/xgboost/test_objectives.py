"""The table of XGBoost's objectives and metrics: every one of the installed release, as the page says."""

from __future__ import annotations

from pathlib import Path

from tests.support import objective_table as table
from trainers.xgboost.parameters import OBJECTIVES

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "xgboost-objectives.md").read_text()


def test_no_objective_is_missing() -> None:
    assert set(table.CASES) == table.own_objectives() == set(OBJECTIVES)


def test_the_page_has_no_more() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) == sum(1 + len(case.metrics) for case in table.CASES.values())
    assert table.head() in PAGE
