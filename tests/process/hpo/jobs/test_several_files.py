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
from tests.support.hpo.jobs.several_files import (
    answer,
    expected,  # noqa: F401  # Fixtures.
)
from trainers import checkpoint, storage
from trainers.checkpoint import MANIFEST, UNKNOWN

FILES = sorted([MANIFEST, "rank-0.json", "rank-1.json"])


@pytest.fixture(params=["a disk", "an object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the job's checkpoints are."""
    if request.param == "a disk":
        return str(tmp_path / "jobs")
    return storage.join(request.getfixturevalue("s3"), "several")


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
