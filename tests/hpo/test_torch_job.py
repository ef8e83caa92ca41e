"""Whole tuning jobs of PyTorch trainers in this process: the distribution tuned too, and trials that diverge."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from rich.console import Console

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    StrategyConfig,
)
from hpo.store import Store
from hpo.uncertainty import proportion_standard_error
from tests.support.torch_job import train
from trainers import ConfigurationError, ParameterServerTrainer, TorchTrainer, TrainContext
from trainers.datasets import load

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
DIGITS = load("digits")
CHANNELS = {"train": DIGITS.train, "validation": DIGITS.validation}
HYPERBAND = StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1))


def tuned(estimator: Any, ranges: dict[str, Any], **options: Any) -> tuple[HyperparameterTuner, str]:
    said = io.StringIO()
    tuner = HyperparameterTuner(
        estimator,
        "validation:accuracy",
        ranges,
        strategy="Hyperband",
        strategy_config=HYPERBAND,
        random_seed=5,
        console=Console(file=said, width=120),
        **{"max_jobs": 6, **options},
    )
    tuner.fit(CHANNELS)
    return tuner, said.getvalue()


STATIC = {"lr": 0.05, "per_worker_batch_size": 32, "mode": "async", "num_workers": 4}


def test_the_distribution_itself_is_tuned_and_what_happened_is_in_the_record() -> None:
    ranges = {
        "lr": ContinuousParameter(0.01, 0.1, "Logarithmic"),
        "mode": CategoricalParameter(["async", "sync", "bounded"]),
        "num_workers": CategoricalParameter([1, 2, 4]),
        "learning_rate_rule": CategoricalParameter(["none", "linear", "sqrt"]),
    }
    made = ParameterServerTrainer(train, scaling=HERE, hyperparameters=STATIC, metrics=["validation:accuracy"])
    tuner, said = tuned(made, ranges, max_jobs=4)
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Completed", said
    name = tuner.latest_tuning_job.name
    with Store() as store:
        trials = {trial.trial_id: trial for trial in store.trials(name)}
    asynchronous = [trial for trial in trials.values() if trial.hyperparameters.get("mode") == "async"]
    assert asynchronous
    for trial in trials.values():
        account = trial.details["parameter_server"]
        assert sum(account["staleness"].values()) == account["pushes"] > 0
        assert account["clock"] == "simulated"
    again = HyperparameterTuner.attach(name)
    assert again.best_estimator().model().keys() == {"model", "optimizer"}
    repeated, _ = tuned(made, ranges, max_jobs=4)
    best = [job.describe()["BestTrainingJob"]["TunedHyperParameters"] for job in (tuner, repeated)]
    assert best[0] == best[1]
    found = tuner.describe()["Summary"]["best"]
    noise = proportion_standard_error(found["value"], len(DIGITS.validation[1]))
    assert found["standard_error"] == pytest.approx(noise)
    assert f"standard error of one validation:accuracy, from its rows: {noise:.4f}" in said


def test_a_trial_that_diverges_ends_at_once_and_the_job_goes_on() -> None:
    made = TorchTrainer(train, scaling=HERE, hyperparameters={"lr": 0.05, "per_worker_batch_size": 32})
    tuner, said = tuned(made, {"lr": CategoricalParameter([0.05, 1e20, 1e30])})
    name = tuner.latest_tuning_job.name
    with Store() as store:
        trials = [trial for trial in store.trials(name) if trial.number >= 0]
        reports = {report.trial_id for report in store.reports(name)}
    diverged = [trial for trial in trials if trial.hyperparameters["lr"] > 1]
    assert diverged
    assert len(diverged) < len(trials)
    for trial in diverged:
        assert (trial.status, trial.resource) == ("Diverged", 0)
        assert "not finite" in trial.failure_reason
        assert trial.trial_id not in reports
    assert "diverged" in said
    assert tuner.describe()["BestTrainingJob"]["TunedHyperParameters"]["lr"] == "0.05"


def test_a_job_of_a_function_that_is_not_to_be_found_can_still_be_looked_at(tmp_path: Path) -> None:
    def local(context: TrainContext) -> None:
        train(context)

    made = TorchTrainer(local, scaling=HERE, hyperparameters={"lr": 0.05, "per_worker_batch_size": 32})
    tuner, _ = tuned(made, {"lr": ContinuousParameter(0.01, 0.1)}, max_jobs=1)
    again = HyperparameterTuner.attach(tuner.latest_tuning_job.name)
    assert again.best_estimator().model()["model"]["0.weight"].shape == (32, 64)
    with pytest.raises(Exception, match="put the function into a module"):
        again.estimator.with_hyperparameters({"epochs": 1}).fit(CHANNELS, storage_path=str(tmp_path))


def test_an_objective_that_is_never_reported_fails_with_what_is(tmp_path: Path) -> None:
    made = TorchTrainer(train, scaling=HERE, hyperparameters={"lr": 0.05, "per_worker_batch_size": 32})
    with pytest.raises(Exception, match="validation:accuracy"):
        HyperparameterTuner(
            made,
            "validation:f1",
            {"lr": ContinuousParameter(0.01, 0.1)},
            strategy="Hyperband",
            strategy_config=HYPERBAND,
            max_jobs=2,
            console=Console(file=io.StringIO()),
        ).fit(CHANNELS)


def test_a_range_whose_batch_does_not_divide_is_refused_before_anything_starts() -> None:
    made = TorchTrainer(train, scaling=ScalingConfig(num_workers=4), hyperparameters={"lr": 0.05})
    with pytest.raises(ConfigurationError, match="does not divide by 4 workers"):
        HyperparameterTuner(
            made,
            "validation:accuracy",
            {"global_batch_size": CategoricalParameter([64, 66])},
            strategy="Hyperband",
            strategy_config=HYPERBAND,
        )


def test_a_job_promotes_trials_whose_checkpoints_hold_numpys_numbers():
    """The mean of a list of losses, as anybody takes it: Hyperband's promoted trials go on from it."""

    def average(context: TrainContext) -> None:
        state = dict(context.checkpoint or {"weight": torch.zeros(1)})
        for epoch in context.epochs():
            state["weight"] = state["weight"] + context.hyperparameters["lr"]
            state["loss"] = np.mean([epoch, float(state["weight"])])
            context.report({"validation:loss": 1 / (1 + state["loss"])}, checkpoint=state)

    tuner = HyperparameterTuner(
        TorchTrainer(average, scaling=HERE),
        "validation:loss",
        {"lr": ContinuousParameter(0.01, 0.1)},
        objective_type="Minimize",
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        max_jobs=9,
        random_seed=5,
        console=Console(file=io.StringIO()),
    )
    tuner.fit(CHANNELS)
    with Store() as store:
        trials = [trial for trial in store.trials(tuner.latest_tuning_job.name) if trial.number >= 0]
    assert {trial.status for trial in trials} <= {"Completed", "Stopped"}
    assert max(trial.resource for trial in trials) == 9
    assert tuner.best_estimator().model()["weight"].shape == (1,)
