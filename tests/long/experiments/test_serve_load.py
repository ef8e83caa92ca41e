"""What the benchmark of the server writes, and what pages show of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from experiments.serve_load import main


def test_a_small_run_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    words = ["--clients", "3", "--rate", "10", "--trials", "3", "--rounds", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["serve_load", *words])
    main()
    (found,) = json.loads((tmp_path / "result.json").read_text())["rounds"]
    assert (found["lost"], found["requests"] > 0) == (0, True)
