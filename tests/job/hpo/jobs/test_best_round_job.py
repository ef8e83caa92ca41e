"""Tuning jobs whose trials end by early stopping, or are compared by their best round: the model is that round's."""

from __future__ import annotations

import io
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from tests.support.driving import Counting
from trainers import XGBoostTrainer

RANDOM = np.random.default_rng(11)
X = RANDOM.integers(0, 12, (400, 5)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] + 9 * RANDOM.normal(size=400) > 11).astype(np.float32)
CHANNELS = {"train": (X[:260], Y[:260]), "validation": (X[260:], Y[260:])}
STATIC = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"], "colsample_bytree": 0.6}


def tuner_of(hyperparameters: dict[str, Any], **options: Any) -> HyperparameterTuner:
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    strategy = HyperbandStrategyConfig(max_resource=27, min_resource=3, suggestions="random")
    settings: dict[str, Any] = {
        "objective_type": "Minimize",
        "max_jobs": 12,
        "strategy": "Hyperband",
        "random_seed": 5,
        "num_to_keep": None,
        "strategy_config": StrategyConfig(strategy),
        "console": Console(file=io.StringIO(), width=120),
    }
    return HyperparameterTuner(
        XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, **hyperparameters}),
        "validation:logloss",
        {"eta": ContinuousParameter(0.1, 1)},
        **{**settings, **options},
    )


def loss(model: xgboost.Booster) -> float:
    model.set_param({"eval_metric": "logloss"})
    return float(model.eval(xgboost.DMatrix(*CHANNELS["validation"])).rpartition(":")[2])


def table(tuner: HyperparameterTuner) -> Any:
    frame = tuner.analytics().dataframe().sort_values("TrainingJobName").reset_index()
    return frame[["TrainingJobStatus", "FinalObjectiveValue", "BestObjectiveValue", "BestObjectiveResource"]]


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("patience", [None, 3])
@pytest.mark.parametrize("objective_value", ["last", "best"])
def test_each_trial_s_model_has_the_value_that_it_is_ranked_by(
    home: Path, booster: str, patience: int | None, objective_value: str
) -> None:
    tuner = tuner_of({"booster": booster, "early_stopping_rounds": patience}, objective_value=objective_value)
    tuner.fit(CHANNELS, job_name="a-job")
    frame = tuner.analytics().dataframe().set_index("TrainingJobName")
    column = "BestObjectiveValue" if objective_value == "best" else "FinalObjectiveValue"
    if objective_value == "best" or patience:
        assert (frame["BestObjectiveResource"] < frame["Resource"]).any(), "the test is of nothing"
    for name, value in frame[column].items():
        model = tuner.best_estimator(str(name)).model()
        assert loss(model) == pytest.approx(value, rel=1e-6), name
    best = tuner.describe()["Summary"]["best"]
    loaded: dict[str, Any] = {}
    exec(best["load"], loaded)
    assert loss(loaded["model"]) == pytest.approx(best["value"], rel=1e-6)


@pytest.mark.parametrize("objective_value", ["last", "best"])
@pytest.mark.parametrize("reports", [1, 20, 60])
def test_a_job_that_was_resumed_ends_trials_where_they_ended(home: Path, objective_value: str, reports: int) -> None:
    told: dict[str, Any] = {"early_stopping_rounds": 3}
    straight = tuner_of(told, objective_value=objective_value)
    straight.fit(CHANNELS, job_name="straight")
    callbacks = (Counting(reports, lambda: signal.raise_signal(signal.SIGINT)),)
    with pytest.raises(KeyboardInterrupt):
        tuner_of(told, objective_value=objective_value, callbacks=callbacks).fit(CHANNELS, job_name="broken")
    again = HyperparameterTuner.attach("broken")
    again.resume(inputs=CHANNELS)
    assert table(again).equals(table(straight))
    assert loss(again.best_estimator().model()) == loss(straight.best_estimator().model())


def test_a_trial_that_ended_keeps_its_place(home: Path) -> None:
    """Nothing is trained for its rounds that are left, and it may be the best."""
    tuner = tuner_of({"early_stopping_rounds": 3})
    tuner.fit(CHANNELS, job_name="a-job")
    best = tuner.describe()["Summary"]["best"]
    ended = best["details"]["early_stopping"]["best_round"]
    model = tuner.best_estimator().model()
    assert model.num_boosted_rounds() == ended == int(model.attr("best_iteration")) + 1
    assert best["resource"] == 27
    curve = tuner.analytics().curve(best["trial"])["validation:logloss"]
    assert set(curve.iloc[ended + 3 :]) == {best["value"]}
