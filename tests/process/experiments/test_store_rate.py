"""What the benchmark of the record writes, and what pages show of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from experiments.store_rate import main


def test_a_run_writes_a_rate_of_each_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--drivers", "1", "--reports", "20", "--rounds", "2", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["store_rate", *words])
    main()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["reports"] == 20
    assert len(result["rates"]["1"]["SQLite"]) == 2
    assert min(result["rates"]["1"]["SQLite"]) > 0
