"""The page of a single training: its conclusion in a sentence, its metrics, and its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hpo.record import TrialRow, when
from hpo.report.data import JobData
from hpo.report.page.blocks import Code, Column, Facts, Table
from hpo.report.page.conclusion import price, score
from hpo.report.page.page import Block, Section
from hpo.text import details_text, first_line, in_bytes, money, places, short
from trainers.details import NO_MODEL

MODEL_CLASS = "TrainingJob"


def training_verdict(data: JobData) -> str:
    """The verdict on a training, whatever has become of it."""
    reason = first_line(data.reason).rstrip(".") if data.reason else ""
    trained = f"{_reached(data)} with {price(data)}"
    match data.status:
        case "InProgress" | "Stopping":
            return f"{'Still training' if data.status == 'InProgress' else 'Asked to stop'}: {trained}."
        case "Failed":
            return f"The training failed{reason and f': {reason}'}; {trained}."
        case "Stopped":
            return f"The training was stopped{reason and f' ({reason})'}: {trained}."
    return f"Trained: {trained}."


def training_subtitle(data: JobData) -> str:
    """What was trained, and the moment of the page."""
    job = data.job
    moment, word = (job.heard, "as of") if job.ended_at is None else (job.ended_at, "ended")
    trainer = job.spec["estimator"]["trainer"]
    return f"A single training of {trainer}. {data.status}, {word} {when(moment):%Y-%m-%d %H:%M:%S} UTC"


def training_result(data: JobData) -> Section:
    """The metrics of the training's last report, and what it took."""
    trial = _trial(data)
    metrics = _last_metrics(data, trial) if trial else {}
    rows = [[name, value] for name, value in metrics.items()]
    table = [Table(["metric", Column("value", places(*metrics.values()))], rows)] if rows else []
    return Section("Result", [*table, Facts(list(_used(data, trial)))])


def training_configuration(data: JobData) -> Section:
    """The hyperparameters, and the code that has them."""
    from hpo.observers import as_attached, as_python, as_yaml  # imports Ray

    values = data.job.spec["estimator"]["hyperparameters"]
    blocks: list[Block] = [Table(["hyperparameter", "value"], [[name, short(value)] for name, value in values.items()])]
    summary: dict[str, Any] = data.job.summary.get("training") or {}
    trainer: dict[str, Any] = summary.get("trainer") or {}
    if trainer:
        attached = as_attached(data.title, trainer, of=MODEL_CLASS)
        blocks += [
            Code(as_yaml(trainer), "YAML", "In a job file, under trainer"),
            Code(as_python(trainer), "Python", "In Python"),
        ]
        if summary.get("command"):
            blocks.append(Code(summary["command"], "sh", "By hand"))
        if not summary.get("details", {}).get(NO_MODEL):
            code = f"from hpo import {MODEL_CLASS}\nmodel = {attached}.model()"
            blocks.append(Code(code, "Python", "Its model, trained"))
    return Section("Configuration", blocks if values else [])


def _trial(data: JobData) -> TrialRow | None:
    return next(iter(data.trials), None)


def _reached(data: JobData) -> str:
    """The objective, or the metric that is shown for it."""
    trial = _trial(data)
    if trial is None or not trial.resource:
        return "nothing trained yet"
    value = data.objective(trial)
    return "it has no value" if value is None else f"{data.metric} is {score(value)}"


def _last_metrics(data: JobData, trial: TrialRow) -> dict[str, float]:
    reports = data.reports.get(trial.trial_id, ())
    return dict(reports[-1].metrics) if reports else {}


def _used(data: JobData, trial: TrialRow | None) -> Iterator[tuple[str, object]]:
    summary = data.job.summary
    yield f"{data.unit}s", f"{data.used:,} of {data.max_resource:,}"
    yield "billed", f"{sum(data.billed.values()):,.1f} worker-seconds"
    if cost := summary.get("cost"):
        yield "money", money(cost["total"], cost["currency"])
    yield "wall time", f"{data.runtime:,.1f} s"
    if kept := summary.get("checkpoints"):
        yield "checkpoints", f"{in_bytes(kept['kept_bytes'])} kept of {in_bytes(kept['written_bytes'])} written"
    if trial is not None and (details := details_text(trial.details)):
        yield "details", details
