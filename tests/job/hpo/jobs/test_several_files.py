"""A job whose checkpoints are of several files: killed before a manifest, resumed, tidied, and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo.record.store import Store
from tests.support import sharded
from tests.support.hpo.jobs.several_files import (
    answer,
    expected,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import refuses
from trainers import DataError, checkpoint, storage
from trainers.gangs.messages import Assignment, Segment


def test_a_file_that_a_lost_gang_writes_late_costs_time_alone(
    expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its training is not reproducible, say: each trial that goes on finds one of its files changed, once."""
    train, spoilt = sharded.Program.train, set()

    def late(program: sharded.Program, assignment: Assignment, *rest: Any) -> Segment:
        if assignment.checkpoint and assignment.trial_id not in spoilt:
            spoilt.add(assignment.trial_id)
            part = Path(assignment.checkpoint, "rank-1.json")
            part.write_bytes(part.read_bytes()[::-1])
        return train(program, assignment, *rest)

    monkeypatch.setattr(sharded.Program, "train", late)
    sharded.tuner(tmp_path, str(tmp_path / "jobs")).fit(sharded.CHANNELS, job_name="job")
    assert spoilt
    assert answer(tmp_path) == expected
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        rows = store.trials("job")
    assert {row.trial_id for row in rows if row.attempts} == spoilt
    for row in rows:
        if row.checkpoint and row.number >= 0:
            names = storage.names(storage.join(str(tmp_path / "jobs"), "job", row.trial_id))
            assert names == [f"{row.resource:06d}" + (".1" if row.attempts else "")], "and nothing else is left"
            checkpoint.check(row.checkpoint, row.manifest)


def test_a_shard_that_changed_is_named_where_the_best_model_is_loaded(tmp_path: Path) -> None:
    tuner = sharded.tuner(tmp_path, str(tmp_path / "jobs"))
    tuner.fit(sharded.CHANNELS, job_name="job")
    best = tuner.best_estimator()
    assert len(best.model()) == sharded.WORKERS
    shard = Path(best.checkpoint, "rank-1.json")
    shard.write_bytes(shard.read_bytes().replace(b"0", b"1"))
    name = tuner.best_training_job()
    with refuses(DataError, field=("checkpoint", name), value=str(shard)):
        best.model()
