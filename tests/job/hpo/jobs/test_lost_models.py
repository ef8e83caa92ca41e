"""Models whose files are lost while a job is stopped: those that the job kept are trained again, to the same bytes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store, TrialRow
from tests.support import population_job
from tests.support.driving import CHANNELS, Counting
from tests.support.jobs import make
from tests.support.untuned import url


def trials(folder: Path) -> dict[str, TrialRow]:
    with Store(url(folder)) as store:
        return {trial.trial_id: trial for trial in store.trials("job")}


def answer(tuner: HyperparameterTuner, folder: Path) -> tuple[dict[str, tuple[int, float | None, str]], str, bytes]:
    """Return units, value and status of each trial, the name of the best trial, and the bytes of its model."""
    rows = {name: (row.resource, row.objective, row.status) for name, row in trials(folder).items()}
    best = tuner.best_estimator()
    return rows, tuner.best_training_job(), bytes(best.model().save_raw("ubj"))


KINDS: dict[str, dict[str, Any]] = {
    "Hyperband": {},
    "early stopping": {"strategy": "Random", "strategy_config": None, "early_stopping_type": "Auto", "max_jobs": 12},
    "ASHA": {"strategy": "ASHA"},
}


def made(folder: Path, kind: str, *callbacks: Counting) -> HyperparameterTuner:
    folder.mkdir()
    if kind == "population":
        return population_job.tuner(folder, callbacks=callbacks, num_to_keep=2)
    static = {"num_round": 9} if KINDS[kind] else {}
    options = {"storage_path": str(folder), "store": url(folder), "num_to_keep": 2, **KINDS[kind]}
    return make(static, callbacks=list(callbacks), **options)[0]


@pytest.mark.parametrize(
    ("kind", "at", "how"),
    [
        ("Hyperband", 12, "cut short"),
        ("Hyperband", 25, "all removed"),
        ("Hyperband", 40, "removed"),
        ("early stopping", 40, "removed"),
        ("ASHA", 20, "all removed"),
        ("population", 30, "all removed"),
    ],
)
def test_a_kept_model_that_is_lost_while_a_job_is_stopped_is_trained_again(
    tmp_path: Path, kind: str, at: int, how: str
) -> None:
    straight = made(tmp_path / "straight", kind)
    straight.fit(CHANNELS, job_name="job")
    folder = tmp_path / "stopped"
    stopped = made(folder, kind, Counting(at, lambda: signal.raise_signal(signal.SIGINT)))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(CHANNELS, job_name="job")
    kept = [row for row in trials(folder).values() if row.checkpoint and row.ended_at is not None]
    assert kept
    best = max(kept, key=lambda row: row.objective or 0.0)
    for row in kept if how == "all removed" else [best]:
        if how == "cut short":
            Path(row.checkpoint).write_bytes(b"cut short")
        else:
            Path(row.checkpoint).unlink()
    again = HyperparameterTuner.attach("job", store=url(folder))
    again.resume(inputs=CHANNELS)
    assert answer(again, folder) == answer(straight, tmp_path / "straight")
    assert {name for name, row in trials(folder).items() if row.checkpoint} == {
        name for name, row in trials(tmp_path / "straight").items() if row.checkpoint
    }
