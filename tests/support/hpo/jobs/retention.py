"""A job that keeps some checkpoints, and the files on its disk."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hpo.jobs.files import checkpoints as module
from hpo.jobs.files.checkpoints import Checkpoints
from hpo.jobs.recorder import JobRecord
from hpo.record.store import JobRow, JobWriter, Store
from hpo.strategies.hyperband import lay_out
from tests.support.simulated import METRIC, rising, search_of, simulate
from trainers import storage
from trainers.gangs.messages import Assignment

SEARCH = search_of(lay_out(30, 1, 27), parallel=4)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "BATCH_SECONDS", 0.01)


@pytest.fixture
def writer(tmp_path) -> Iterator[JobWriter]:
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.create_job(JobRow(name="job", created_at=1.0))
        with store.writer("job") as writer:
            writer.store = store
            yield writer


def train(assignment: Assignment, step: int) -> float:
    """Writes what a worker would, and needs what a worker would."""
    if step == assignment.start + 1 and assignment.checkpoint:
        assert storage.read(assignment.checkpoint) == f"{assignment.trial_id} {assignment.start}".encode()
    if step == assignment.stop:
        storage.write(assignment.save_to, f"{assignment.trial_id} {step}".encode())
    if assignment.trial_id == "job-007" and step > 3:
        raise RuntimeError("boom")
    return math.nan if assignment.trial_id == "job-005" else rising(assignment, step)


def run_job(writer: JobWriter, folder: str, num_to_keep: int | None = 5, **options):
    keeper = Checkpoints(replace(SEARCH, storage_path=folder), writer.flush, num_to_keep=num_to_keep)
    controller, gangs, _ = simulate(
        curve=train, record=JobRecord(writer, METRIC, (), keeper), storage_path=folder, **options
    )
    return controller, gangs, keeper


def on_disk(folder: Path) -> dict[str, list[str]]:
    return {trial.name: sorted(file.name for file in trial.iterdir()) for trial in sorted(folder.iterdir())}
