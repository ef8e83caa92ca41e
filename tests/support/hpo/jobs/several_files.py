"""The answer of a job whose checkpoints have several files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store
from tests.support import sharded


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
