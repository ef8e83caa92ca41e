"""A job whose checkpoints are of several files: killed before a manifest, resumed, tidied, and loaded."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store
from hpo.search.trial import UNTUNED
from tests.support import sharded
from tests.support.refusals import refuses
from trainers import DataError, checkpoint, storage
from trainers.checkpoint import MANIFEST, UNKNOWN
from trainers.gangs.messages import Assignment, Segment

FILES = sorted([MANIFEST, "rank-0.json", "rank-1.json"])


@pytest.fixture(params=["a disk", "an object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the job's checkpoints are."""
    if request.param == "a disk":
        return str(tmp_path / "jobs")
    return storage.join(request.getfixturevalue("s3"), "several")


def answer(folder: Path) -> dict[str, Any]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        job, trials, reports = store.job("job"), store.trials("job"), store.reports("job")
    best = HyperparameterTuner.attach("job", store=f"sqlite:///{folder}/record.db", allow_code=True).best_estimator()
    return {
        "status": job.status,
        "best": job.summary["best"]["trial"],
        "model": best.model(),
        "trials": [(row.trial_id, row.status, row.resource, row.objective, bool(row.checkpoint)) for row in trials],
        "reports": [(row.trial_id, row.step, row.metrics) for row in reports],
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    sharded.tuner(folder, str(folder / "jobs")).fit(sharded.CHANNELS, job_name="job")
    return answer(folder)


@pytest.mark.process
@pytest.mark.fault
def test_a_job_that_is_killed_between_its_shards_and_their_manifest_goes_on_from_the_last_whole_checkpoint(
    expected: dict[str, Any], place: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.support.sharded", str(tmp_path), place]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    job = storage.join(place, "job")
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        before = {row.trial_id: row for row in store.trials("job")}
    rungs = [(trial, rung) for trial in before for rung in storage.names(storage.join(job, trial))]
    folders = [(trial, storage.join(job, trial, rung)) for trial, rung in rungs]
    [(broken, left)] = [(trial, uri) for trial, uri in folders if MANIFEST not in storage.names(uri)]
    assert storage.names(left) == ["rank-0.json", "rank-1.json"]
    assert before[broken].checkpoint not in ("", left)
    for row in before.values():
        assert not row.checkpoint or checkpoint.manifest_of(row.checkpoint) == row.manifest != UNKNOWN

    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db", allow_code=True).resume()
    assert answer(tmp_path) == expected
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        kept = {row.trial_id: row for row in store.trials("job") if row.checkpoint}
    assert len(kept) == 2 + (UNTUNED in kept)
    assert [name for name in storage.names(job) if name.startswith("job-") or name == UNTUNED] == sorted(kept)
    for trial, row in kept.items():
        assert storage.names(storage.join(job, trial)) == [f"{row.resource:06d}"]
        assert storage.names(row.checkpoint) == FILES
        checkpoint.check(row.checkpoint, row.manifest)


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
