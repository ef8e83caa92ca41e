"""Jobs that are written into a record by hand, and the commands that read it."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli import app
from hpo.job_file.reading import read_job
from hpo.record.store import JobRow, LedgerRow, Store, TrialRow
from trainers.errors import ConfigurationError

BANK = Path(__file__).resolve().parents[2] / "experiments" / "bank-marketing.yaml"


@cache
def bank() -> HyperparameterTuner:
    return HyperparameterTuner(**read_job(BANK).arguments())


def spec(**changes: Any) -> dict[str, Any]:
    inputs = {"train": {"kind": "pandas", "rows": 35009, "columns": ["y", "x"], "files": []}}
    return {**bank().settings.to_json({}, 1729), "inputs": inputs, **changes}


def job(store: Store, name: str, *, values: list[float | None], age: float = 120.0, **changes: Any) -> None:
    """A job that has ended, with a trial for each value; None failed."""
    now = time.time()
    plan = bank().plan().to_json()
    store.create_job(JobRow(name=name, created_at=now - age, spec=spec(**changes.pop("spec", {})), plan=plan))
    with store.writer(name) as writer:
        for number, value in enumerate(values):
            writer.trial(
                TrialRow(
                    job=name,
                    trial_id=f"{name}-{number:03d}",
                    number=number,
                    status="Failed" if value is None else "Completed",
                    hyperparameters={"eta": 0.1 * number + 0.123456, "max_depth": number, "booster": "[b]dart[/]"},
                    resource=30,
                    objective=value,
                    checkpoint=f"/models/{name}-{number:03d}",
                    failure_reason="" if value is not None else f"bad [bold]luck[/bold] {number}",
                    traceback="" if value is not None else "Traceback: line 7",
                    started_at=now - 60,
                    ended_at=now - 30,
                )
            )
            writer.ledger(LedgerRow(job=name, trial_id="", gang="g", kind="idle", worker_seconds=1.0, at=now))
            trial = f"{name}-{number:03d}"
            writer.ledger(LedgerRow(job=name, trial_id=trial, gang="g", kind="training", worker_seconds=2.5, at=now))
        # The un-tuned run is not one of the trials.
        writer.trial(TrialRow(job=name, trial_id="untuned", number=-1, objective=0.999, ended_at=now))
        writer.job(**{"status": "Completed", "ended_at": now - 10} | changes)


def with_untuned(store: Store, name: str, value: float, **changes: Any) -> None:
    """A job of two trials with the values 0.7 and 0.75, whose un-tuned run has trained to its end."""
    job(store, name, values=[0.7, 0.75])
    untuned = {"status": "Completed", "objective": value, "resource": 30, "hyperparameters": {"eta": 0.3}, **changes}
    with store.writer(name) as writer:
        now = time.time()
        ends = {"started_at": now - 60, "ended_at": now - 30, "checkpoint": f"/models/{name}-untuned"}
        writer.trial(TrialRow(job=name, trial_id="untuned", number=-1, **{**ends, **untuned}))
        best = "untuned" if value > 0.75 and not changes else f"{name}-001"
        writer.job(summary={"best": {"trial": best}, "best_trial": {"standard_error": 0.01}})


def hpo(*arguments: str, columns: int = 80, code: int = 0) -> str:
    """Run a command; return its output."""
    result = CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(app, arguments)
    if isinstance(result.exception, ConfigurationError):
        assert code == 2, result.exception
        return str(result.exception)
    assert result.exit_code == code, result.output
    assert all(len(line) <= columns for line in result.stdout.splitlines() if not line.lstrip().startswith(("{", '"')))
    return result.stdout
