"""Values of jobs and trials as words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from hpo.cost import Tariff
from hpo.text import short

STYLES = {
    "Completed": "green",
    "InProgress": "cyan",
    "Running": "cyan",
    "Failed": "red",
    "Diverged": "magenta",
    "Stopping": "yellow",
    "Stopped": "yellow",
}


def value_text(value: float | None) -> str:
    """An objective, or a dash."""
    return "-" if value is None else f"{value:.5f}" if abs(value) < 1e4 else f"{value:.6g}"


def ago(seconds: float) -> str:
    """How long ago, in the largest unit that says it."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit != "min" and seconds >= size):
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def settings(values: Mapping[str, Any]) -> str:
    """Hyperparameters in a line, each to four digits."""
    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def status_text(status: str) -> Text:
    """A status in its colour."""
    return Text(status, style=STYLES.get(status, ""))


def cost_text(tariff: Tariff | None, worker_seconds: float) -> str:
    """In money; empty where the job has no prices."""
    return tariff.text(worker_seconds) if tariff else ""
