"""Jobs whose models' storage goes away, and resumes that fail early: nothing is lost, and the answer is the same."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.support.driving import CHANNELS, Counting, answer, tuner
from tests.support.hpo.jobs.storage_away import (
    Disk,
    quick,  # noqa: F401  # Of every test.
    undisturbed,  # noqa: F401  # Fixtures.
)
from tests.support.rows import until
from trainers import patient_storage


def test_a_gang_waits_for_its_storage_too(ray_cluster: None, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """Of one worker, with the answer of this process; of two, on a full disk: tests/long/cluster/test_drivers.py."""
    disk = Disk(tmp_path)

    class Follows(Counting):
        def on_trial_report(self, trial: Any, report: Any) -> None:
            super().on_trial_report(trial, report)
            if self.reports == self.at:
                disk.gone()
                threading.Thread(target=back_once_it_waits, daemon=True).start()

    def printed() -> str:
        return str(job._console.file.getvalue())  # type: ignore[attr-defined]

    def back_once_it_waits() -> None:
        until(lambda: "10 minutes" in printed())
        disk.back()

    job = tuner(tmp_path, (Follows(12),), workers=1)
    job.fit(CHANNELS, job_name="job")
    assert answer(tmp_path, "job") == undisturbed
    assert printed().count("10 minutes") == 1
    assert printed().count(patient_storage.BACK) == 1
