"""Programs whose metrics are in files of their own, from rung to rung."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.refusals import refuses
from tests.support.script_programs import assignment, values
from trainers import TrialError
from trainers.script.program import ScriptProgram

CSV = """
import csv, os, time
path = os.path.join(os.environ["SM_CHECKPOINT_DIR"], "metrics.csv")
rows = list(csv.DictReader(open(path))) if os.path.exists(path) else []
acc = float(rows[-1]["validation:accuracy"]) if rows else 0.0
for epoch in range(len(rows), 6):
    time.sleep(0.3)
    acc += 0.5 * (1 - acc)
    rows.append({"epoch": epoch, "validation:accuracy": acc})
    with open(path + ".new", "w", newline="") as file:
        table = csv.DictWriter(file, ["epoch", "validation:accuracy"])
        table.writeheader()
        table.writerows(rows)
    os.replace(path + ".new", path)
"""
"""Goes on from its own table, which it writes anew each time."""

EVENTS = """
from tensorboardX import SummaryWriter
writer = SummaryWriter("runs/mine")
acc = 0.0
for epoch in range(4):
    acc += 0.5 * (1 - acc)
    writer.add_scalar("val/acc", acc, epoch)
    writer.add_scalar("lr", 0.1, epoch)
    writer.flush()
"""
"""Says nothing but to TensorBoard."""

ACC = [(unit, 1 - 0.5**unit) for unit in range(1, 7)]


def test_a_table_is_followed_over_pauses_and_no_row_counts_twice(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened(CSV, metric_definitions=None, metric_files=["{checkpoints}/*.csv"])
    first = program.train(assignment(tmp_path, 2), print)
    second = program.train(assignment(tmp_path, 6, first), print)
    assert values(first, second) == [(unit, pytest.approx(value)) for unit, value in ACC]
    assert second.details.keys() <= {"no_model"}


def test_scalars_of_event_files_are_units(opened: Callable[..., ScriptProgram], tmp_path: Path) -> None:
    program = opened(EVENTS, metric_definitions=None, metric_files=["runs"])
    segment = program.train(replace(assignment(tmp_path, 4), objective="val/acc"), print)
    found = [(report.step, report.metrics["val/acc"]) for report in segment.reports]
    assert found == [(unit, pytest.approx(value)) for unit, value in ACC[:4]]


def test_a_program_without_such_files_fails_and_names_the_globs(
    opened: Callable[..., ScriptProgram], tmp_path: Path
) -> None:
    program = opened("print('done')", metric_definitions=None, metric_files=["logs/*.csv"])
    with refuses(TrialError, field=("metric_files", "logs/*.csv")):
        program.train(assignment(tmp_path, 4), print)
