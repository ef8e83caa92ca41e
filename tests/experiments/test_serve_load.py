"""What the benchmark of the server writes, and what pages show of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from experiments.serve_load import main, page_tables


def test_the_page_s_table_has_a_line_a_round() -> None:
    each = {"requests": 3000, "p50": 0.01, "p99": 0.2, "lost": 0, "alone_seconds": 50.0, "loaded_seconds": 60.0}
    assert page_tables({"rounds": [each]})["load"].splitlines()[-1] == "| 3,000 | 10 ms | 200 ms | 0 | 1.20 |"


@pytest.mark.process
def test_a_small_run_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    words = ["--clients", "3", "--rate", "10", "--trials", "3", "--rounds", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["serve_load", *words])
    main()
    (found,) = json.loads((tmp_path / "result.json").read_text())["rounds"]
    assert (found["lost"], found["requests"] > 0) == (0, True)
