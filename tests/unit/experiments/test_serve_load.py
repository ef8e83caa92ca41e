"""What the benchmark of the server writes, and what pages show of it."""

from __future__ import annotations

from experiments.serve_load import page_tables


def test_the_page_s_table_has_a_line_a_round() -> None:
    each = {"requests": 3000, "p50": 0.01, "p99": 0.2, "lost": 0, "alone_seconds": 50.0, "loaded_seconds": 60.0}
    assert page_tables({"rounds": [each]})["load"].splitlines()[-1] == "| 3,000 | 10 ms | 200 ms | 0 | 1.20 |"
