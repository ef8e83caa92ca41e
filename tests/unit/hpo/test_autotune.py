"""Autotune: what is chosen for a job, said, recorded and found again; and names to keep static that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
)
from hpo.autotune import Autotuned
from hpo.job_file import read_job
from hpo.strategies import BayesianStrategy
from tests.support.hpo.autotune import STATIC, boosting, make
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from trainers import ScalingConfig, TorchTrainer, TrainContext
from trainers.errors import ConfigurationError


def names(tuner: HyperparameterTuner) -> list[str]:
    assert isinstance(tuner.autotune, Autotuned)
    return [choice.name for choice in tuner.autotune.choices]


def test_ranges_budget_strategy_and_end_are_chosen_and_said() -> None:
    tuner = make()
    trees = {"eta", "max_depth", "min_child_weight", "gamma", "subsample", "colsample_bytree", "lambda", "alpha"}
    assert set(tuner.ranges) == trees
    assert (tuner.strategy, tuner.max_jobs) == ("Hyperband", 90)
    assert tuner.completion_criteria_config.complete_on_convergence
    assert set(names(tuner)) == trees | {"strategy", "max_jobs", "complete_on_convergence"}
    mentions(str(tuner.autotune).splitlines()[0], "eta", "0.037037", "0.5", "logarithmic")
    assert tuner.estimator.hyperparameters == STATIC


def test_the_budget_counts_the_repeats_of_each_configuration() -> None:
    tuner = make(repeats=7)
    assert tuner.max_jobs == 90 * 7
    assert isinstance(tuner.autotune, Autotuned)
    (said,) = [choice for choice in tuner.autotune.choices if choice.name == "max_jobs"]
    assert said.chosen == "630"
    mentions(said.why, 45, 4, 8, 7)


def test_what_the_user_gives_holds() -> None:
    eta = ContinuousParameter(0.1, 0.2)
    config = StrategyConfig(HyperbandStrategyConfig(9, 1))
    end = TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.9)
    tuner = make(
        trainer=boosting(eta=None),
        ranges={"learning_rate": eta},
        strategy="Hyperband",
        strategy_config=config,
        max_jobs=7,
        completion_criteria_config=end,
        hyperparameters_to_keep_static=["subsample"],
    )
    assert tuner.ranges["learning_rate"] is eta
    assert not {"eta", "subsample"} & set(tuner.ranges)
    assert (tuner.max_jobs, tuner.strategy_config, tuner.completion_criteria_config) == (7, config, end)
    assert set(names(tuner)) == set(tuner.ranges) - {"learning_rate"}


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ({"strategy": "Random"}, "Random"),
        ({"strategy": BayesianStrategy()}, "Bayesian"),
        ({"early_stopping_type": "Auto"}, "Bayesian"),
        ({"trainer": boosting(num_round=5)}, "Bayesian"),
        ({}, "Hyperband"),
    ],
)
def test_the_constructor_s_default_gives_way_where_trials_can_be_stopped(
    options: dict[str, Any], strategy: str
) -> None:
    tuner = make(**options)
    assert tuner.settings.strategy_name == strategy
    assert tuner.max_jobs == (90 if strategy == "Hyperband" else 80)


def test_a_length_that_nothing_says_is_the_trainer_s_usual_one() -> None:
    tuner = make(boosting(num_round=None))
    assert tuner.estimator.hyperparameters["num_round"] == tuner.plan().max_resource == 100
    assert [choice.chosen for choice in tuner.autotune.choices if choice.name == "num_round"] == ["100"]
    assert any(not missing_names(line, "num_round", 100) for line in str(tuner.autotune).splitlines())


@pytest.mark.parametrize(
    ("static", "name", "expected"),
    [
        ({"eta": 0.9}, "eta", (1 / 27, 0.9)),
        ({"eta": 0.001, "num_round": 500}, "eta", (0.001, 0.5)),
        ({"lambda": 0}, "lambda", (0.01, 100)),
        ({"eta": None, "learning_rate": 0.3}, "learning_rate", (1 / 27, 0.5)),
        ({"booster": "gblinear"}, "alpha", (1e-4, 10)),
    ],
)
def test_ranges_hold_the_trainer_s_own_values(static: dict[str, Any], name: str, expected: tuple[float, float]) -> None:
    bounds = make(boosting(**static)).ranges[name]
    assert (bounds.min_value, bounds.max_value) == pytest.approx(expected)


def test_a_tree_without_a_limit_has_none_chosen() -> None:
    assert "max_depth" not in make(boosting(max_depth=0, grow_policy="lossguide")).ranges


def train(context: TrainContext) -> None:
    """Never called here."""


def network(**static: Any) -> TorchTrainer:
    return TorchTrainer(train, scaling=ScalingConfig(num_workers=4), hyperparameters={"epochs": 30, **static})


def test_a_function_s_hyperparameters_are_known_by_their_names() -> None:
    trainer = network(lr=0.1, momentum=0.9, weight_decay=0, global_batch_size=64, dropout=0.2, width=64, nesterov=True)
    ranges = make(trainer, hyperparameters_to_keep_static=["dropout"]).ranges
    assert set(ranges) == {"lr", "momentum", "weight_decay", "global_batch_size"}
    assert (ranges["lr"].min_value, ranges["lr"].max_value) == pytest.approx((0.001, 1))
    assert ranges["momentum"].resolved_scaling == "ReverseLogarithmic"
    assert ranges["global_batch_size"].values == [16, 32, 64, 128, 256]
    four = make(network(lr=0.1, global_batch_size=8)).ranges["global_batch_size"].values
    assert four == [4, 8, 16, 32], "a batch is one that 4 workers can divide"


def test_what_cannot_be_chosen_for_is_refused() -> None:
    eta = ContinuousParameter(0, 1)
    kept = "hyperparameters_to_keep_static"
    refuses_each(
        [
            (lambda: make(autotune="yes"), ("autotune", "yes", True, False)),
            (lambda: make(autotune=False), ("hyperparameter_ranges", None, "dict", "autotune=True")),
            (
                lambda: make(autotune=False, ranges={"eta": eta}, hyperparameters_to_keep_static=["eta"]),
                (kept, ["eta"], "autotune", "autotune=True"),
            ),
            (lambda: make(hyperparameters_to_keep_static="eta"), (kept, "eta", "list")),
            (lambda: make(hyperparameters_to_keep_static=[1]), (kept, [1], "list")),
            (lambda: make(hyperparameters_to_keep_static=["eta", "eta"]), (kept, "eta")),
            (lambda: make(hyperparameters_to_keep_static=["subsampel"]), (kept, "subsampel", "num_round", "subsample")),
            (lambda: make(ranges={"eta": eta}, hyperparameters_to_keep_static=["eta"]), (kept, "eta", "range")),
            (lambda: make(trainer=network(width=64)), ("autotune", "epochs", "width", "hyperparameter_ranges")),
            (
                lambda: make(trainer=network(lr=0.1).with_hyperparameters({"epochs": None})),
                ("how long", "epochs"),
            ),
            (lambda: make(strategy="Grid"), ("hyperparameter_ranges['eta']", "Grid", "step", "categorical")),
        ],
        ConfigurationError,
    )


JOB = """
name: automatic
data: {{channels: {{train: {{path: {folder}/train.csv}}, validation: {{path: {folder}/validation.csv}}}}}}
trainer: {{type: xgboost, num_workers: 0, hyperparameters: {{objective: "binary:logistic", eval_metric: auc, eta: 1}}}}
tuning:
  objective_metric_name: validation:auc
  autotune: true
  hyperparameters_to_keep_static: [eta]
"""


def test_a_job_file_says_the_same(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB.format(folder=tmp_path), encoding="utf-8")
    tuner = HyperparameterTuner(**read_job(job).arguments(), console=False)
    assert tuner.plan().max_resource == 100
    assert names(tuner)[:2] == ["num_round", "max_depth"]
    assert "eta" not in tuner.ranges
    bayesian = read_job(job, ["tuning.strategy=Bayesian"]).arguments()
    assert HyperparameterTuner(**bayesian, console=False).settings.strategy_name == "Bayesian"
    with refuses(ConfigurationError, field=("tuning", "ranges"), remedy="autotune: true"):
        read_job(job, ["tuning.autotune=false"])


def test_a_record_of_before_has_none() -> None:
    tuner = make(ranges={"eta": ContinuousParameter(0, 1)}, autotune=False)
    assert tuner.settings.to_json({}, 1)["autotune"] is None
