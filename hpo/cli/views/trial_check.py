"""Findings of `hpo check`, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from hpo.cli.views.words import value_text
from hpo.text import count, in_bytes, short

if TYPE_CHECKING:
    from hpo.jobs import TrialCheck

MOST_FILES = 5
"""The most files of a model that are named."""
WIDTH = 10
"""Characters before the text of a line."""
LONGEST_LINE = 200
"""Characters of a line of output that are shown."""


def trial_check_lines(found: TrialCheck) -> list[str]:
    """Return a line for each thing that was looked at, problems last."""
    lines: list[str] = []

    def row(name: str, text: str) -> None:
        lines.append(f"{name:<{WIDTH}}{text}")

    workers = count(found.workers, "worker") if found.workers else "this process"
    values = ", ".join(f"{name}={short(value)}" for name, value in found.hyperparameters.items()) or "none"
    row("trial", f"{values}, on {workers}")
    if found.command:
        row("command", found.command)
    for metric, line in found.matched.items():
        row("metric", f"{metric}, first in the line {line[:LONGEST_LINE]!r}")
    units = [(unit.number, _unit(unit.metrics, restarted=unit.restarted)) for unit in found.units]
    for text, alike in groupby(units, itemgetter(1)):  # A step that jumps fills the units before it with its values.
        numbers = [number for number, _ in alike]
        if len(numbers) > 1:
            row("units", f"{numbers[0]} to {numbers[-1]}: {text}")
        else:
            row(f"unit {numbers[0]}", text)
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
        row("warning", text)
    for text in found.problems:
        row("problem", text)
    if not found.problems:
        row("result", "no problem was found")
    return lines


def _unit(metrics: Mapping[str, float], *, restarted: bool) -> str:
    text = ", ".join(f"{name}={value_text(value)}" for name, value in metrics.items())
    return f"{text}{' (after the restart)' if restarted else ''}"


def _model(found: TrialCheck) -> str:
    files = [f"{name} ({in_bytes(size)})" for name, size in (found.model or {}).items()]
    if files:
        more = f" and {count(len(files) - MOST_FILES, 'more file')}" if len(files) > MOST_FILES else ""
        return ", ".join(files[:MOST_FILES]) + more
    last = found.units[-1].number if found.units else 0
    if last < found.length:
        return f"empty so far: the trial was stopped after unit {last} of {found.length}"
    return "empty: the program wrote nothing to SM_MODEL_DIR"
