"""Retention: what a trial needs next is never dropped, the best stay, and removing never delays a job."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.search.trial import UNTUNED
from tests.support.hpo.jobs.retention import (
    on_disk,
    quick,  # noqa: F401  # Of every test.
    run_job,
    writer,  # noqa: F401  # Fixtures.
)
from tests.support.rows import until
from trainers import XGBoostTrainer, storage


@pytest.mark.parametrize("losses", [frozenset(), frozenset({0, 5, 17})])
def test_a_job_leaves_the_best_and_the_untuned_run(writer, tmp_path, losses):
    folder = tmp_path / "jobs" / "job"
    controller, gangs, keeper = run_job(writer, str(folder), losses=losses)
    written = len(gangs.served) - len(losses)
    assert len(controller.runs) == 30
    late = folder / "job-000" / "000001"
    until(lambda: not late.parent.exists())  # Removals go on beside the search.
    storage.write(str(late), b"a gang that was lost wrote this late")
    storage.write(str(folder / "job-029" / f".000030.{'0' * 32}"), b"and began this")
    storage.write(str(folder / "of-the-user" / "notes"), b"this is not the job's")
    totals = keeper.close(sweep=True)
    runs = sorted(
        (run for run in controller.runs.values() if math.isfinite(run.value) and not run.failure),
        key=lambda run: (-run.value, run.resource, run.number),
    )
    best = {run.id: [f"{run.resource:06d}"] for run in runs[:5]}
    assert on_disk(folder) == {**best, UNTUNED: ["000030"], "of-the-user": ["notes"]}
    assert totals == {"kept": 6, "kept_bytes": 0, "written_bytes": 0}
    assert written > 40
    writer.flush()
    rows = {row.trial_id: row for row in writer.store.trials("job")}
    assert {trial for trial, row in rows.items() if row.checkpoint} == {*best, UNTUNED}
    assert all(storage.read(row.checkpoint) for row in rows.values() if row.checkpoint)
    assert rows["job-005"].status != "Running"


def test_a_job_on_an_object_store_leaves_the_same(writer, s3):
    folder = storage.join(s3, "simulated")
    storage.check_writable(folder)
    controller, _, keeper = run_job(writer, folder)
    assert keeper.close(sweep=True)["kept"] == 6
    kept = sorted(run.id for run in controller.runs.values() if run.checkpoint)
    assert storage.names(folder) == sorted([*kept, UNTUNED])
    assert len(kept) == 5
    for run in controller.runs.values():
        if run.checkpoint:
            assert storage.read(run.checkpoint) == f"{run.id} {run.resource}".encode()


def test_a_whole_job_on_an_object_store(s3, tmp_path):
    """It writes and resumes there, and loads the best from there; a gang does in tests/system/test_secrets.py."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 5)).astype("float32")
    rows[:, 0] = rows[:, 1] > 0
    static = {"objective": "binary:logistic", "eval_metric": "auc"}
    tuner = HyperparameterTuner(
        XGBoostTrainer(scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}), hyperparameters=static),
        "validation:auc",
        {"eta": ContinuousParameter(0.01, 1)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions="random")),
        max_jobs=5,
        random_seed=1,
        storage_path=s3,
        store=f"sqlite:///{tmp_path}/store.db",
        console=Console(file=io.StringIO()),
    )
    tuner.fit({"train": rows[:200], "validation": rows[200:]}, job_name="whole")
    best = tuner.best_training_job()
    assert best in storage.names(storage.join(s3, "whole"))
    trained = tuner.best_estimator()
    assert trained.model().num_boosted_rounds() == trained.units
    assert tuner.describe()["TrainingJobStatusCounters"]["NonRetryableError"] == 0
