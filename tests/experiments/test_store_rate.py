"""What the benchmark of the record writes, and what pages show of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from experiments.store_rate import main, page_tables
from tests.support.refusals import mentions


def test_the_pages_table_has_medians_and_their_ratio() -> None:
    rates = {
        "1": {"SQLite": [4000.0, 4300.0, 9000.0], "PostgreSQL 15.3": [3000.0, 3100.0, 3200.0]},
        "8": {"SQLite": [1000.0] * 3, "PostgreSQL 15.3": [2000.0] * 3},
    }
    made = page_tables({"reports": 10_000, "rates": rates})
    assert made["rates"].splitlines() == [
        "| drivers | SQLite, reports a second | PostgreSQL 15.3, reports a second | PostgreSQL to SQLite |",
        "| --- | --- | --- | --- |",
        "| 1 | 4,300 | 3,100 | 0.72 |",
        "| 8 at once | 1,000 | 2,000 | 2.00 |",
    ]
    mentions(made["what"], "10,000 reports", "driver", "medians", "3 rounds")


@pytest.mark.process
def test_a_run_writes_a_rate_of_each_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--drivers", "1", "--reports", "20", "--rounds", "2", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["store_rate", *words])
    main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["reports"] == 20
    assert len(result["rates"]["1"]["SQLite"]) == 2
    assert min(result["rates"]["1"]["SQLite"]) > 0
