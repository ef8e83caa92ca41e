"""Jobs whose trials are stopped."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.record.store import Store
from hpo.sagemaker import describe_training, stop_trial
from tests.support.driving import CHANNELS
from tests.support.rows import until
from trainers import XGBoostTrainer


def endless_job(folder: Path, workers: int, store: str, **options: Any) -> HyperparameterTuner:
    """Two trials that train until something ends them."""
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 1_000_000},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1)},
        strategy="Random",
        max_jobs=2,
        storage_path=str(folder),
        store=store,
        console=Console(file=io.StringIO()),
        **options,
    )


def check_end_in_the_middle(tmp_path: Path, workers: int) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    long = endless_job(tmp_path, workers, store)

    def stop_both() -> None:
        with Store(store) as record:
            until(lambda: any(row.name == "job" for row in record.jobs()))
            for number, name in enumerate(("job-000", "job-001")):
                until(lambda name=name: any(row.trial_id == name for row in record.trials("job")))
                stop_trial(record, "job", name, by="ada")
                until(lambda number=number: sum(bool(row.stopped) for row in record.trials("job")) > number)
            record.request_stop("job")  # The un-tuned run is as long.

    thread = threading.Thread(target=stop_both)
    thread.start()
    long.fit(CHANNELS, job_name="job")
    thread.join(30)
    with Store(store) as record:
        assert record.job("job").status == "Stopped"
        for row in (row for row in record.trials("job") if row.number >= 0):
            assert (row.status, row.stopped) == ("Stopped", {"by": "ada", "told": row.resource == 0})
            assert row.resource < 1_000_000


def check_end_of_time(tmp_path: Path, workers: int) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    endless = endless_job(tmp_path, workers, store, max_trial_runtime=1)
    endless.fit(CHANNELS, job_name="job")
    with Store(store) as record:
        job, rows = record.job("job"), record.trials("job")
        assert (job.status, len(rows)) == ("Completed", 3)
        for row in rows:
            assert (row.status, row.stopped_by) == ("Stopped", "max_trial_runtime")
            assert 0 < row.resource < 1_000_000
        described = describe_training(job, next(row for row in rows if row.number == 0))
        assert (described["TrainingJobStatus"], described["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
        assert described["StoppingCondition"] == {"MaxRuntimeInSeconds": 1}
        before = [(row.trial_id, row.resource, row.stopped) for row in rows]
        record.update_job("job", lambda now: {"status": "Stopped"})
    # All of it is decided again, and nothing is trained.
    HyperparameterTuner.attach("job", store=store).resume(inputs=CHANNELS)
    with Store(store) as record:
        assert record.job("job").status == "Completed"
        assert [(row.trial_id, row.resource, row.stopped) for row in record.trials("job")] == before
