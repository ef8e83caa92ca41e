"""What the image model's script makes of its measurements, and short runs of it in this process; no Ray."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from experiments import mnist
from experiments.mnist import (
    measure,
    settings,
)
from experiments.shared.network import METRICS, Setting
from experiments.shared.network_tuning import JOBS, tune
from hpo import HyperparameterTuner
from hpo.job_file.reading import read_job
from hpo.record.store import Store
from hpo.sagemaker.analytics import tuned_trials
from trainers.datasets import Dataset, load


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def test_one_worker_learns_the_digits(digits: Dataset, tmp_path: Path) -> None:
    alone = settings(4, 10)[0]
    first = measure(alone, digits, 10, str(tmp_path), in_hand=True)
    assert first.accuracy > 0.9
    assert len(first.curve) == 10
    again = measure(alone, digits, 10, str(tmp_path), in_hand=True)
    assert (again.accuracy, again.curve) == (first.accuracy, first.curve)


def test_simulated_asynchronous_workers_are_stale_and_come_out_the_same(digits: Dataset, tmp_path: Path) -> None:
    asynchronous = settings(4, 3)[1]
    first, again = (measure(asynchronous, digits, 3, str(tmp_path), in_hand=True) for _ in range(2))
    assert first.curve == again.curve
    assert first.staleness > 1
    assert first.details["parameter_server"]["clock"] != "wall"


def test_what_diverges_is_an_outcome_too(digits: Dataset, tmp_path: Path) -> None:
    wild = Setting(name="wild", workers=1, changed={"lr": 1e30})
    found = measure(wild, digits, 2, str(tmp_path), in_hand=True)
    assert found.diverged
    assert math.isnan(found.accuracy)


@pytest.mark.parametrize("job", JOBS)
def test_a_tuning_job_ends_with_a_better_model_and_its_cost(job: str, digits: Dataset, tmp_path: Path) -> None:
    console = Console(quiet=True)
    tuned = tune(job, digits, str(tmp_path), workers=4, trials=6, epochs=9, in_hand=True, console=console)
    assert sum(tuned.trials.values()) == 6
    assert set(tuned.best) >= set(JOBS[job])
    assert tuned.untuned is not None
    assert tuned.accuracy > tuned.untuned
    assert 0 < tuned.untuned_worker_seconds < tuned.worker_seconds
    with Store(f"sqlite:///{tmp_path}/{job}.db") as store:
        trials = tuned_trials(store, job)
    assert np.unique([trial.hyperparameters["lr"] for trial in trials]).size == 6


def test_the_job_file_is_the_second_job(digits: Dataset, tmp_path: Path) -> None:
    path = Path(mnist.__file__).with_name("mnist.yaml")
    here = [
        "data.dataset=digits",
        "trainer.num_workers=0",
        "trainer.resources_per_worker={CPU: 1}",
        "trainer.hyperparameters.num_workers=4",
        "tuning.hyperband.max_resource=3",
        "tuning.max_jobs=3",
        f"store=sqlite:///{tmp_path}/record.db",
        f"storage_path={tmp_path}/jobs",
    ]
    spec = read_job(path, allow_code=True)
    assert {name: bounds.parameter() for name, bounds in spec.tuning.ranges.items()} == JOBS[
        "learning-and-distribution"
    ]
    made, ours = spec.trainer.trainer(), settings(4, 9)[1].trainer(9)
    assert {**made.hyperparameters, "num_workers": 4, "epochs": 9} == ours.hyperparameters
    tuner = HyperparameterTuner(**read_job(path, here, allow_code=True).arguments(), console=Console(quiet=True))
    tuner.fit(read_job(path, here, allow_code=True).data.open(None))
    assert tuner.describe()["Summary"]["best"]["metrics"].keys() == set(METRICS)
