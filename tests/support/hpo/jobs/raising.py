"""The `hpo` command, and the record that raised limits leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo.record.store import JobRow, Store
from tests.support.command import run
from tests.support.small_job import write_job

KEYS = (
    "name=job",
    "trainer.num_workers=0",
    "tuning.hyperband.max_resource=9",
    "tuning.max_jobs=5",
    "tuning.max_runtime_in_seconds=3600",
    "tuning.ranges.subsample={type: continuous, min: 0.5, max: 1}",
    "cost={per_worker_hour: 3600, currency: EUR}",
)


class Command:
    """The hpo command, in this process, beside a job file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = write_job(folder)
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command; return its output."""
        found = run(self.monkeypatch, *arguments)
        printed = self.capsys.readouterr()
        assert found == code, printed.err
        return printed.out + printed.err

    def tune(self, *keys: str) -> str:
        """Runs the job of the file, with keys over it."""
        return self("tune", str(self.file), *(word for key in (*KEYS, *keys) for word in ("--set", key)))

    def resume(self, *keys: str, code: int = 0) -> str:
        """Goes on with it."""
        return self("resume", "job", *(word for key in keys for word in ("--set", key)), code=code)


@pytest.fixture
def hpo(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("COLUMNS", "300")
    return Command(tmp_path, monkeypatch, capsys)


def found() -> tuple[JobRow, list[tuple[Any, ...]]]:
    """The job, and what became of its trials."""
    with Store() as store:
        trials = [trial for trial in store.trials("job") if trial.number >= 0]
        return store.job("job"), [
            (each.trial_id, each.status, each.resource, each.objective, each.hyperparameters, each.bracket)
            for each in trials
        ]
