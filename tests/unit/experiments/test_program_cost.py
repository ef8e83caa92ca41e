"""What the cost of programs comes to, and that talking.py works as it is measured."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from experiments.program_cost import KEPT, PROGRAMS, Turns, page_tables, targets
from experiments.shared.benchmark import targets_to_json

MEASURED = {
    "pytorch_ddp": Turns(launcher="torchrun", here=[10.0, 10.0, 12.0], there=[9.9, 9.7, 12.1]),
    "first step": Turns(launcher="torchrun", here=[0.5, 0.4], there=[10.0, 9.0]),
    "output": Turns(launcher="python", here=[10.1, 10.3], there=[10.0, 10.0]),
}


def test_ratios_are_medians_within_turns() -> None:
    assert {name: turns.ratio for name, turns in MEASURED.items()} == {
        "pytorch_ddp": pytest.approx(0.99),
        "first step": pytest.approx(21.25),
        "output": pytest.approx((10 / 10.1 + 10 / 10.3) / 2),
    }


def test_promises_are_those_of_what_was_measured() -> None:
    assert [(target.limit, target.kept) for target in targets(MEASURED)] == [(0.98, True), (20, True), (1.02, True)]
    assert targets({}) == []


def test_the_page_has_a_line_for_each() -> None:
    result = {
        "program_cost": {name: asdict(turns) for name, turns in MEASURED.items()},
        "targets": targets_to_json(targets(MEASURED)),
    }
    tables = page_tables(result)
    assert "| `pytorch_ddp` | torchrun | 10.00 s | 9.90 s | 0.990 |" in tables["programs"]
    assert "| first step | torchrun | 0.45 s | 9.50 s | 21 |" in tables["programs"]
    assert tables["promises"].count("\n") >= len(targets(MEASURED))


def test_programs_are_there() -> None:
    assert {name for name in PROGRAMS if not (KEPT.parent / f"{name}.py").is_file()} == set()
