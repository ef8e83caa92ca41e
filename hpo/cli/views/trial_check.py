"""Findings of `hpo check` as a table of a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from hpo.cli.views.words import value_text
from hpo.text import count, in_bytes, short

if TYPE_CHECKING:
    from hpo.jobs import TrialCheck

MOST_FILES = 5
"""The most files of a model that are named."""
LONGEST_LINE = 200
"""Characters of a line of output that are shown."""


def trial_check_table(found: TrialCheck) -> Table:
    """Return a row for each thing that was looked at, problems last."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("what", no_wrap=True, style="bold")
    table.add_column("found", overflow="fold")

    def row(name: str, text: str, style: str = "") -> None:
        table.add_row(name, Text(text, style=style))

    workers = count(found.workers, "worker") if found.workers else "this process"
    values = ", ".join(f"{name}={short(value)}" for name, value in found.hyperparameters.items()) or "none"
    row("trial", f"{values}, on {workers}")
    if found.command:
        row("command", found.command)
    for metric, line in found.matched.items():
        row("metric", f"{metric}, first in the line {line[:LONGEST_LINE]!r}")
    for unit in found.units:
        metrics = ", ".join(f"{name}={value_text(value)}" for name, value in unit.metrics.items())
        row(f"unit {unit.number}", f"{metrics}{' (after the restart)' if unit.restarted else ''}")
    if found.restart:
        row("restart", found.restart)
    if found.model is not None:
        row("model", _model(found))
    if found.units:
        row(
            "cost",
            f"{found.unit_seconds:.3g} s a unit; a whole trial of {count(found.length, 'unit')} takes about "
            f"{found.trial_seconds:.3g} worker-seconds",
        )
    for text in found.warnings:
        row("warning", text, "yellow")
    for text in found.problems:
        row("problem", text, "red")
    if not found.problems:
        row("result", "no problem was found", "green")
    return table


def _model(found: TrialCheck) -> str:
    files = [f"{name} ({in_bytes(size)})" for name, size in (found.model or {}).items()]
    if files:
        more = f" and {count(len(files) - MOST_FILES, 'more file')}" if len(files) > MOST_FILES else ""
        return ", ".join(files[:MOST_FILES]) + more
    last = found.units[-1].number if found.units else 0
    if last < found.length:
        return f"empty so far: the trial was stopped after unit {last} of {found.length}"
    return "empty: the program wrote nothing to SM_MODEL_DIR"
