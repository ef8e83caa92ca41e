"""The table of XGBoost's objectives and metrics: every one of the installed release, as the page says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import objective_table as table
from tests.support.process_gang import ProcessGang, process_gang

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "reference" / "xgboost-objectives.md").read_text()


@pytest.fixture(scope="module")
def gangs() -> Iterator[list[ProcessGang]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        yield [opened.enter_context(process_gang(workers, folder)) for workers in table.WORKERS]


@pytest.mark.filterwarnings("ignore:.*reg.linear is now deprecated")
@pytest.mark.parametrize("objective", sorted(table.CASES))
def test_an_objective_does_what_the_table_says(gangs: list[ProcessGang], tmp_path: Path, objective: str) -> None:
    row, metrics = table.outcome(objective, gangs, tmp_path)
    lines = [table.objective_line(objective, row)]
    lines += [table.metric_line(metric, objective, each) for metric, each in metrics.items()]
    for line in lines:
        assert f"{line}\n" in PAGE, "docs/reference/xgboost-objectives.md is out of date: run `make docs`"
