"""Whole tuning jobs of PyTorch trainers in this process: the distribution tuned too, and trials that diverge."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from rich.console import Console
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    StrategyConfig,
)
from hpo.record.store import Store
from hpo.uncertainty import proportion_standard_error
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.torch_job import train
from trainers import ConfigurationError, ParameterServerTrainer, TorchTrainer, TrainContext
from trainers.datasets import load

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
DIGITS = load("digits")
CHANNELS = {"train": DIGITS.train, "validation": DIGITS.validation}
HYPERBAND = StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1, suggestions="random"))


def tuned(estimator: Any, ranges: dict[str, Any], **options: Any) -> tuple[HyperparameterTuner, str]:
    said = io.StringIO()
    tuner = HyperparameterTuner(
        estimator,
        "validation:accuracy",
        ranges,
        strategy="Hyperband",
        console=Console(file=said, width=120),
        **{"strategy_config": HYPERBAND, "random_seed": 5, "max_jobs": 6, **options},
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
    found_in = [line for line in said.splitlines() if not missing_names(line, "validation:accuracy", f"{noise:.4f}")]
    assert found_in, said


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
        mentions(trial.failure_reason, "finite")
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
    with refuses(Exception, remedy=("allow_code=True", "attach()", "--allow-code")):
        again.estimator.with_hyperparameters({"epochs": 1}).fit(CHANNELS, storage_path=str(tmp_path))


def test_an_objective_that_is_never_reported_fails_with_what_is(tmp_path: Path) -> None:
    made = TorchTrainer(train, scaling=HERE, hyperparameters={"lr": 0.05, "per_worker_batch_size": 32})
    with refuses(Exception, value="validation:f1", remedy="validation:accuracy"):
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
    with refuses(ConfigurationError, field=("global_batch_size", "workers", "4"), value=66, remedy="64"):
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
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1, suggestions="random")),
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


def broken(context: TrainContext) -> None:
    """Fails in one of the ways in which functions do whose errors say little by themselves, or trains nothing."""
    model = context.prepare_model(nn.Linear(64, 10))
    for _ in context.epochs():
        match context.hyperparameters["way"]:
            case "key":
                context.hyperparameters["learning_rate"]
            case "exit":
                sys.exit(3)
            case "wordless":
                raise NotImplementedError
        context.report({"validation:accuracy": 0.5}, checkpoint={"model": model.state_dict()})


def test_why_a_trial_failed_says_which_error_it_was() -> None:
    made = TorchTrainer(broken, scaling=HERE, hyperparameters={"way": "none", "per_worker_batch_size": 32})
    ways = CategoricalParameter(["none", "key", "exit", "wordless"])
    tuner, said = tuned(made, {"way": ways}, max_jobs=12, random_seed=1)
    found = {error["error"] for error in tuner.describe()["Summary"]["errors"]}
    raised = {"KeyError: 'learning_rate'", "NotImplementedError"}
    assert raised < found
    (exited,) = found - raised
    mentions(exited, "sys.exit(3)")
    mentions(said, "KeyError: 'learning_rate'")
    failed = [trial for trial in tuner.analytics().training_job_summaries() if trial["TrainingJobStatus"] == "Failed"]
    assert all("in broken" in trial["Traceback"] for trial in failed)


def not_finite(context: TrainContext) -> None:
    """Reports a metric that is no number from some epoch on, whatever its network does."""
    model = context.prepare_model(nn.Linear(64, 10))
    for epoch in context.epochs():
        bad = epoch + 1 >= context.hyperparameters["bad_from"]
        metrics = {"validation:accuracy": float(context.hyperparameters["bad"]) if bad else 0.5}
        context.report(metrics, checkpoint={"model": model.state_dict()})


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("bad", ["nan", "-inf"])
def test_an_objective_that_is_no_finite_number_ends_its_trial_with_that_report(bad: str, simulated: bool) -> None:
    """At once, and not at the end of a rung; on one worker, and on several that have to agree."""
    static: dict[str, Any] = {"bad": bad, "bad_from": 100, "per_worker_batch_size": 32}
    made = (
        ParameterServerTrainer(not_finite, scaling=HERE, hyperparameters={**static, "num_workers": 3, "mode": "sync"})
        if simulated
        else TorchTrainer(not_finite, scaling=HERE, hyperparameters=static)
    )
    long = StrategyConfig(HyperbandStrategyConfig(max_resource=20, min_resource=20, suggestions="random"))
    ranges = {"bad_from": CategoricalParameter([1, 7, 100])}
    tuner, _ = tuned(made, ranges, strategy_config=long, max_jobs=9, random_seed=1)
    with Store() as store:
        name = tuner.latest_tuning_job.name
        trials = [trial for trial in store.trials(name) if trial.number >= 0]
        steps = {trial.trial_id: [r.step for r in store.reports(name, trial.trial_id)] for trial in trials}
    assert {trial.hyperparameters["bad_from"] for trial in trials} == {1, 7, 100}
    for trial in trials:
        at = trial.hyperparameters["bad_from"]
        assert trial.status == ("Completed" if at == 100 else "Diverged")
        assert trial.resource == min(at, 20)
        assert steps[trial.trial_id] == list(range(1, trial.resource + 1))
        if at == 100:
            assert not trial.failure_reason
        else:
            mentions(trial.failure_reason, "validation:accuracy", float(bad), at)
    assert tuner.describe()["Summary"]["resource_used"] == sum(trial.resource for trial in trials)


def test_a_trial_that_ends_itself_keeps_its_place_in_the_search() -> None:
    """Patience in the function: the best of all trials ends early, is promoted all the same, and wins."""
    trained: list[float] = []

    def learn(context: TrainContext) -> None:
        lr = context.hyperparameters["lr"]
        for epoch in context.epochs():
            trained.append(lr)
            better = lr > 0.05 and epoch == 1
            context.report({"validation:accuracy": lr}, checkpoint={"epoch": epoch}, final=better)

    tuner, said = tuned(TorchTrainer(learn, scaling=HERE), {"lr": ContinuousParameter(0.01, 0.1)}, max_jobs=6)
    name = tuner.latest_tuning_job.name
    with Store() as store:
        trials = [trial for trial in store.trials(name) if trial.number >= 0]
        reports = [(report.trial_id, report.step) for report in store.reports(name)]
    assert {trial.status for trial in trials} <= {"Completed", "Stopped"}, said
    best = max(trials, key=lambda trial: trial.hyperparameters["lr"])
    assert tuner.best_training_job() == best.trial_id
    assert best.resource == 3
    assert [step for trial_id, step in reports if trial_id == best.trial_id] == [1, 2, 3]
    assert trained.count(best.hyperparameters["lr"]) == 2
    assert tuner.best_estimator().model() == {"epoch": 1}


def own_rows(context: TrainContext) -> None:
    """Trains on a DataLoader's rows, which no channel has."""
    features = torch.arange(40.0).reshape(20, 2) / 40
    loader = DataLoader(TensorDataset(features, features.sum(1, keepdim=True)), batch_size=5)
    model = context.prepare_model(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=context.hyperparameters["lr"])
    if context.checkpoint:
        model.load_state_dict(context.checkpoint)
    for _ in context.epochs():
        for batch, answers in context.prepare_data(loader):
            context.step(nn.functional.mse_loss(model(batch), answers), optimizer)
        context.report(
            {"loss": nn.functional.mse_loss(model(features), features.sum(1, keepdim=True)).item()}, model.state_dict()
        )


def test_a_function_that_brings_its_own_rows_needs_no_channel() -> None:
    trainer = TorchTrainer(own_rows, scaling=HERE, hyperparameters={"lr": 0.1, "epochs": 2})
    console = Console(file=io.StringIO())
    ranges = {"lr": ContinuousParameter(0.01, 0.5, "Logarithmic")}
    tuner = HyperparameterTuner(
        trainer,
        "loss",
        ranges,
        objective_type="Minimize",
        strategy="Hyperband",
        strategy_config=HYPERBAND,
        max_jobs=3,
        console=console,
    )
    tuner.fit()
    assert tuner.best_estimator().model()
    assert trainer.fit().metrics["loss"] > 0
    with refuses(ConfigurationError, field="channels", value="'trian'", remedy='"train"'):
        tuner.fit({"trian": DIGITS.train})
