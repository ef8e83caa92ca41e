"""A search over schedules on a gang of two workers, one of which is killed: the answer of trials trained alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.record.store import Store
from hpo.search import trials
from tests.support.schedules import CHANNELS, tuner
from tests.support.simulated_schedules import Apart

pytestmark = pytest.mark.fault


def fitted(folder: Path, kill: str = "") -> tuple[dict[tuple[str, int], dict[str, float]], int]:
    """Every value of every trial, and the units that gangs trained for them."""
    folder.mkdir()
    tuner(folder, workers=2, kill=kill).fit(CHANNELS, job_name="job")
    with Store(f"sqlite:///{folder}/record.db") as store:
        reports = {(row.trial_id, row.step): row.metrics for row in store.reports("job")}
        return reports, store.job("job").summary["resource_used"]


def test_shared_beginnings_on_gangs(ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kill").touch()
    shared, units = fitted(tmp_path / "shared", kill=str(tmp_path / "kill"))
    assert not (tmp_path / "kill").exists(), "a worker was killed"
    monkeypatch.setattr(trials, "Sharing", Apart)
    alone, more = fitted(tmp_path / "alone")
    assert (units, more) == (13, 18)
    assert shared == alone
