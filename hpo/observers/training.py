"""A single training: its progress as lines, its summary, and what to do with its model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hpo.observers.progress import Goal, PlainProgress
from hpo.observers.snippets import as_attached, as_python, as_yaml
from hpo.observers.summary import GLUE, Brief, by_hand, code_text, cost_text, costs, ended_text, load_code, trained_as
from hpo.search import Controller, TrialRun, status_of
from hpo.strategies import Cut, Plan
from hpo.text import count, details_text, holds_secret, short
from trainers.channels import Channel
from trainers.details import NO_MODEL
from trainers.gangs import Report
from trainers.trainer import Trainer

MODEL_CLASS = "TrainingJob"
"""The class that attaches to a training, and loads its model."""


class TrainingProgress(PlainProgress):
    """A line a checkpoint, with the metrics there."""

    def __init__(self, goal: Goal, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(goal, say, clock)
        self._metrics: Mapping[str, float] = {}
        self._over = False

    def improved(self, run: TrialRun) -> None:
        """Nothing: a checkpoint's line has its value."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """See `Observer.reports`."""
        super().reports(run, reports)
        self._metrics = reports[-1].metrics

    def rung(self, cut: Cut) -> None:
        """See `Observer.rung`."""
        self.tally.rung(cut)
        self.say(f"checkpoint after {count(cut.resource, self.goal.unit)}{_behind(self._metrics)}")

    def trial(self, run: TrialRun) -> None:
        """See `Observer.trial`."""
        super().trial(run)
        if run.ended_at is not None and not self._over and not (run.failure or run.diverged):
            self._over = True
            self.say(f"trained {count(run.resource, self.goal.unit)}{_behind(run.metrics)}")


def lines_for(goal: Goal, say: Callable[[str], None]) -> PlainProgress:
    """A job's progress as lines, as `PlainProgress`, or for a training as `TrainingProgress`."""
    return (TrainingProgress if goal.training else PlainProgress)(goal, say)


def training_of(controller: Controller, trainer: Trainer, channels: Mapping[str, Channel]) -> dict[str, Any] | None:
    """What a training came to, for the summary that the record keeps; None where it has not begun.

    Args:
        controller: its run.
        trainer: what trained.
        channels: that it read.
    """
    run = next(iter(controller.runs.values()), None)
    if run is None:
        return None
    value = controller.objective(run)
    return {
        "trial": run.id,
        "status": status_of(run),
        "resource": run.resource,
        "value": value if math.isfinite(value) else None,
        "metrics": run.metrics,
        "checkpoint": run.checkpoint or "",
        "trainer": trained_as(trainer, trainer.hyperparameters, run.resource),
        "command": by_hand(trainer, trainer.hyperparameters, channels),
        "load": load_code(trainer, run) if run.checkpoint else "",
        "details": run.details,
    }


def failure_of(controller: Controller) -> str:
    """Why a training failed or diverged; empty if it did neither."""
    for run in controller.runs.values():
        if run.failure or run.diverged:
            return run.failure or f"training diverged: {run.diverged}"
    return ""


def show_training_plan(plan: Plan, unit: str) -> Text:
    """The length of a training and its checkpoints, before it starts."""
    rungs = plan.brackets[0].rungs
    if len(rungs) == 1:
        return Text(f"It trains {count(rungs[-1], unit)}, with one checkpoint at the end.")
    return Text(f"It trains {count(rungs[-1], unit)}, with a checkpoint every {count(rungs[0], unit)}.")


def show_training(
    name: str, status: str, summary: Mapping[str, Any], *, resume: str = "", verbose: bool = False
) -> RenderableType:
    """Return the summary of a training for people: the few lines that matter, or all that is known.

    Args:
        name: the job.
        status: the job's.
        summary: as the record has it.
        resume: how to resume the job, if that is possible.
        verbose: show all rows in place of at most `Brief.LINES` lines.
    """
    reason = str(summary.get("reason") or summary.get("stopped") or "")
    training = summary.get("training") or {}
    metrics, details = training.get("metrics") or {}, details_text(training.get("details", {}))
    logs = [error["logs"] for error in summary.get("errors", ()) if error.get("logs")]
    known = "worker_seconds" in summary
    if not verbose:
        values = ", ".join(f"{metric} {value:.5f}" for metric, value in metrics.items())
        rows = [
            *([("found", values)] if values else []),
            *([("details", details)] if details else []),
            *([("cost", cost_text(summary))] if known else []),
            *(("logs", path) for path in logs[:1]),
        ]
        return Brief(ended_text(name, status, reason, resume.replace(" ", GLUE)), rows, name)
    table = Table(title=f"{name}: {status}", title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows = [
        *((heading, words) for heading, words in (("reason", reason), ("to go on", resume)) if words),
        *(("logs", path) for path in logs),
        *((metric, f"{value:.5f}") for metric, value in metrics.items()),
        *([("details", details)] if details else []),
        *(costs(summary) if known else ()),
    ]
    for heading, words in rows:
        table.add_row(heading, Text(words))
    return table


def show_training_code(name: str, summary: Mapping[str, Any], store: str | None = None) -> Text:
    """Return the code that loads a training's model and repeats it, ready to be copied; print it with `soft_wrap`.

    Args:
        name: the job.
        summary: its summary.
        store: database URL of its record, where that is not the one that is found by itself; one with a password in it
            is not repeated.

    Returns:
        The code; empty where there is no model.
    """
    training = summary.get("training") or {}
    if not training.get("checkpoint"):
        return Text()
    secret = bool(store) and holds_secret(str(store))
    hint = ", with the store's URL in WARMBAND_STORE" if secret else ""
    attached = as_attached(name, training["trainer"], None if secret else store, of=MODEL_CLASS)
    parts = []
    if not training.get("details", {}).get(NO_MODEL):
        code = f"from hpo import {MODEL_CLASS}\nmodel = {attached}.model()"
        parts.append((f"its model, in {training['checkpoint']}{hint}:", code))
    if training.get("load"):
        imported, _, code = training["load"].partition("\n")
        parts.append((f"or without Warmband, after {imported}:", code))
    parts += [
        ("the same training in a job file, under trainer:", as_yaml(training["trainer"], indent="  ")),
        ("in Python:", as_python(training["trainer"])),
    ]
    if training.get("command"):
        parts.append(("by hand:", training["command"]))
    return code_text(parts)


def _behind(metrics: Mapping[str, float]) -> str:
    """Metrics, to put behind a sentence."""
    return ": " + ", ".join(f"{name} {short(float(value))}" for name, value in metrics.items()) if metrics else ""
