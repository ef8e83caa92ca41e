"""A single training as a job of the record: its curve, its bill, its end, and going on with it."""

from __future__ import annotations

import io
import signal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo import Callback, HyperparameterTuner, Prices, TrainingJob, train
from hpo.record.store import Store
from hpo.sagemaker import stop_trial
from tests.support import resuming, torch_job
from tests.support.driving import CHANNELS
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from tests.support.trainings import ROUNDS, boosted, outcome, training, url
from trainers import ParameterServerTrainer, ScalingConfig, TorchTrainer
from trainers.errors import ConfigurationError, WarmbandError


class Interrupting(Callback):
    """Presses Ctrl-C at a report."""

    def __init__(self, at: int) -> None:
        self.at = at

    def on_trial_report(self, trial: Any, report: Any) -> None:
        if report.step == self.at:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that ran to its end."""
    folder = tmp_path_factory.mktemp("done")
    training(folder, prices=Prices(per_worker_hour=3.0, currency="EUR")).fit(CHANNELS, "solo")
    return folder


def test_it_is_a_job_with_a_curve_a_bill_and_lines(done: Path) -> None:
    with Store(url(done)) as store:
        job, (trial,) = store.job("solo"), store.trials("solo")
        assert (job.status, job.spec["kind"], job.spec["objective_metric_name"]) == ("Completed", "training", "")
        assert (trial.status, trial.resource, trial.objective) == ("Completed", ROUNDS, None)
        assert [report.step for report in store.reports("solo")] == list(range(1, ROUNDS + 1))
        assert sum(row.worker_seconds for row in store.ledger("solo")) > 0
        lines = [line.text for line in store.lines("solo")]
    assert any(not missing_names(line, "checkpoint", f"{ROUNDS // 10} rounds", "validation:auc") for line in lines)
    assert any(not missing_names(line, f"{ROUNDS} rounds", "validation:auc") for line in lines)
    assert job.summary["cost"]["currency"] == "EUR"
    assert job.summary["untuned"] is None
    assert not job.summary["probe"]


def test_its_result_is_what_a_trainers_fit_returns(done: Path) -> None:
    result = TrainingJob.attach("solo", store=url(done)).result()
    alone = boosted().fit(CHANNELS, storage_path=str(done / "alone"))
    assert len(result.reports) == len(alone.reports) == ROUNDS
    assert result.metrics.keys() == alone.metrics.keys()
    assert result.curve.shape == alone.curve.shape
    assert result.worker_seconds >= result.training_seconds > 0
    assert result.model().num_boosted_rounds() == ROUNDS
    assert result.model().get_dump() == TrainingJob.attach("solo", store=url(done)).model().get_dump()


def test_train_is_fit_with_a_name(tmp_path: Path) -> None:
    job = train(boosted(num_round=3), CHANNELS, "named", store=url(tmp_path), storage_path=str(tmp_path), console=False)
    assert job.name == "named"
    assert job.curve().index.tolist() == [1, 2, 3]


def test_the_same_seed_gives_the_same_model(done: Path, tmp_path: Path) -> None:
    training(tmp_path).fit(CHANNELS, "solo")
    assert outcome(tmp_path, "solo") == outcome(done, "solo")


def test_one_that_is_stopped_goes_on_to_the_same_model(done: Path, tmp_path: Path) -> None:
    job = training(tmp_path, callbacks=(Interrupting(ROUNDS // 2 + 1),))
    with pytest.raises(KeyboardInterrupt):
        job.fit(CHANNELS, "solo")
    assert 0 < len(job.curve()) < ROUNDS
    assert job.model().num_boosted_rounds() == len(job.curve())
    stopped = job.describe()
    assert (stopped["TrainingJobStatus"], stopped["SecondaryStatus"]) == ("Stopped", "Stopped")
    TrainingJob.attach("solo", store=url(tmp_path), console=False).resume(inputs=CHANNELS)
    assert outcome(tmp_path, "solo") == outcome(done, "solo")


def test_an_objective_is_kept_and_its_best_value_too(tmp_path: Path) -> None:
    job = training(tmp_path, objective_metric_name="validation:auc", objective_value="best")
    job.fit(CHANNELS, "scored")
    with Store(url(tmp_path)) as store:
        (trial,) = store.trials("scored")
    values = job.curve()["validation:auc"]
    assert trial.best_objective == values.max()
    assert trial.objective == values.iloc[-1]


def test_a_training_that_fails_says_why(tmp_path: Path) -> None:
    wild = boosted(objective="reg:squarederror", eval_metric="rmse", eta=1e38)
    job = training(tmp_path, wild, objective_metric_name="validation:rmse")
    with refuses(WarmbandError, field=("failing", "validation:rmse"), value="diverged"):
        job.fit(CHANNELS, "failing")
    described = job.describe()
    assert described["TrainingJobStatus"] == described["SecondaryStatus"] == "Failed"
    assert described["FailureReason"]


def test_a_limit_of_its_cost_stops_it(tmp_path: Path) -> None:
    job = training(tmp_path, prices=Prices(per_worker_hour=3.6e9), max_cost=1.0)
    job.fit(CHANNELS, "dear")
    with Store(url(tmp_path)) as store:
        row = store.job("dear")
    assert row.status == "Stopped"
    mentions(row.reason, "max_cost", "1.00")
    job.resume(inputs=CHANNELS, max_cost=1e12)
    assert job.describe()["TrainingJobStatus"] == "Completed"


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    def make(**change: Any) -> TrainingJob:
        return training(tmp_path, **change)

    lengths = ("num_round", "num_boost_round", "n_estimators")
    refuses_each(
        [
            (lambda: make(repeats=3), ("TrainingJob", "repeats")),
            (lambda: make(max_job=3), ("TrainingJob", "max_job")),
            (lambda: make(objective_value="best"), ("objective_value", "best", "objective_metric_name")),
            (lambda: make(objective_metric_name="auc"), ("objective_metric_name", "'auc'", "channel", "metric")),
            (lambda: make(checkpoint_every=0), ("checkpoint_every", 0, 1)),
            (lambda: make(checkpoint_every=2.5), ("checkpoint_every", 2.5, 1)),
            (lambda: make(max_cost=3.0), ("max_cost", 3.0, "prices")),
            (
                lambda: make(max_runtime_in_seconds=9, max_wait=3),
                ("max_wait", 3, "max_runtime_in_seconds", 9),
            ),
            (lambda: make(trainer=5), (5, "trainer", "XGBoostTrainer")),
            (lambda: make(trainer=boosted(num_round=None)), ("hyperparameters", *lengths)),
            (
                lambda: make(trainer=boosted(num_round=10**6), checkpoint_every=1),
                ("checkpoint_every", 1, 1000000, 100),
            ),
        ],
        ConfigurationError,
    )


def test_each_class_attaches_to_its_own_kind(done: Path) -> None:
    with refuses(ConfigurationError, field="solo", remedy="hpo.TrainingJob"):
        HyperparameterTuner.attach("solo", store=url(done))
    with refuses(ConfigurationError, field=("max_jobs", "training")):
        TrainingJob.attach("solo", store=url(done), console=False).resume(max_jobs=2)
    with refuses(ConfigurationError, field="strategy", value="Training", remedy=("hpo.TrainingJob", "hpo train")):
        HyperparameterTuner(boosted(), "validation:auc", {}, strategy="Training", autotune=True)


def test_a_check_runs_nothing_and_records_nothing(tmp_path: Path) -> None:
    printed = io.StringIO()
    job = training(tmp_path, checkpoint_every=8, console=Console(file=printed, width=120))
    job.check(CHANNELS, "dry")
    said = printed.getvalue().splitlines()
    assert any(not missing_names(line, f"{ROUNDS} rounds", "checkpoint", "8 rounds") for line in said)
    with Store(url(tmp_path)) as store:
        assert store.jobs() == []
    with refuses(ConfigurationError, field="objective_metric_name", value="validation:rmse", remedy="validation:auc"):
        training(tmp_path, objective_metric_name="validation:rmse").check(CHANNELS)


HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
DIGITS = {"lr": 0.05, "per_worker_batch_size": 64, "epochs": 4}


@pytest.mark.parametrize("kind", [TorchTrainer, ParameterServerTrainer])
def test_pytorch_and_parameter_servers_go_on_from_a_checkpoint(tmp_path: Path, kind: Any) -> None:
    simulated = {"num_workers": 2, "mode": "sync"} if kind is ParameterServerTrainer else {}
    for name, callbacks in (("whole", ()), ("cut", (Interrupting(2),))):
        folder = tmp_path / name
        folder.mkdir()
        trainer = kind(torch_job.train, scaling=HERE, hyperparameters={**DIGITS, **simulated})
        job = training(folder, trainer, checkpoint_every=1, callbacks=callbacks)
        if callbacks:
            with pytest.raises(KeyboardInterrupt):
                job.fit(resuming.DIGITS, "solo")
            assert 0 < len(job.curve()) < 4
            job.callbacks = ()
            job.resume(inputs=resuming.DIGITS)
        else:
            job.fit(resuming.DIGITS, "solo")
        assert job.result().metrics["validation:accuracy"] > 0.5
        assert job.model() is not None
    assert outcome(tmp_path / "cut", "solo")["reports"] == outcome(tmp_path / "whole", "solo")["reports"]


def test_its_one_trial_is_stopped_with_the_job_alone(done: Path) -> None:
    with Store(url(done)) as store, refuses(ConfigurationError, field="'solo'", remedy="hpo stop solo"):
        stop_trial(store, "solo", "solo-000")
