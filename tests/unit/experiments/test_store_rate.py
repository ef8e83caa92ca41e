"""What the benchmark of the record writes, and what pages show of it."""

from __future__ import annotations

from experiments.store_rate import page_tables
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
