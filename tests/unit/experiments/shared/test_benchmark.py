"""What every benchmark writes: its figures, and where they come from."""

import json
import math
import sys
from pathlib import Path

import pytest

from experiments.shared.benchmark import Target, markdown, promised, targets_to_json, write


def test_a_result_says_how_when_and_where_it_was_measured(tmp_path: Path) -> None:
    path = write(tmp_path / "new", {"seconds": [1.5, math.nan]})
    written = json.loads(path.read_text())
    assert written["seconds"] == [1.5, None]
    assert written.keys() >= {"command", "date", "machine"}
    assert written["machine"].keys() >= {"cores", "memory_gb", "platform", "python", "ray", "torch", "xgboost"}


def test_the_command_of_a_result_names_no_place_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--quick", "--out", "/tmp/here", "image", "--data-dir=/data", "--seeds", "3", "--data-dir", "~/data"]
    words += ["postgresql://me:secret@host/empty"]
    monkeypatch.setattr(sys, "argv", ["x", *words])
    command = json.loads(write(tmp_path, {}).read_text())["command"]
    assert command.endswith(" --quick image --seeds 3 postgresql://...")


def test_a_table_is_the_markdown_of_the_pages() -> None:
    assert markdown(("", "s"), [("a trial", "1.5")]) == "| | s |\n| --- | --- |\n| a trial | 1.5 |"


def test_a_page_says_which_promises_were_kept() -> None:
    quick = Target(promise="a start", limit=0.05, measured=0.0132, note="median")
    slow = Target(promise="speed", limit=2, measured=1.5, unit="times", at_least=True)
    assert promised(targets_to_json([quick, slow])).splitlines()[2:] == [
        "| a start | at most 0.05 s | 0.0132 s | kept | median |",
        "| speed | at least 2 times | 1.5 times | **missed** | |",
    ]


def test_a_promise_is_told_without_exponents_and_without_a_figure_too(tmp_path: Path) -> None:
    many = Target(promise="starts, times shorter", limit=300, measured=1921.4, unit="x", at_least=True)
    diverged = Target(promise="test accuracy", limit=0.97, measured=math.nan, unit="", at_least=True)
    written = json.loads(write(tmp_path, {"targets": targets_to_json([many, diverged])}).read_text())
    assert promised(written["targets"]).splitlines()[2:] == [
        "| starts, times shorter | at least 300 x | 1,921 x | kept | |",
        "| test accuracy | at least 0.97 | no figure | **missed** | |",
    ]
