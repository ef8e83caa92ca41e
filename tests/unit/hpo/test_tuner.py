"""Whole tuning jobs on a real cluster, through the public Python API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperparameterTuner,
)
from hpo.record.store import Store
from tests.support.boosting import CHANNELS, RANGES, STATIC, make
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError, DataError, ScriptTrainer, XGBoostTrainer


def test_attach_keeps_scaling_types_and_categorical_types(home: Path) -> None:
    tuner = make(workers=40, max_parallel_jobs=4)
    tuner.ranges = {
        "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
        "tree_method": CategoricalParameter(["hist", "approx"]),
        "validate_parameters": CategoricalParameter([0, "1", None, True]),
    }
    from hpo.jobs.files.inputs import record_inputs
    from trainers.channels import open_channels

    with Store() as store:
        from hpo.record.store import JobRow

        spec = tuner.settings.to_json(record_inputs(open_channels(CHANNELS), str(home)), 5)
        store.create_job(JobRow(name="a-job", created_at=1.0, spec=spec))
    again = HyperparameterTuner.attach("a-job")
    assert again.ranges == tuner.ranges
    assert (again.random_seed, again.max_parallel_jobs) == (5, 4)


def test_a_wrong_value_is_named_before_anything_starts() -> None:
    refuses_each(
        [
            (lambda: make(strategy="Hyprband"), ("strategy", "Hyprband", "Hyperband")),
            (lambda: make(strategy="Random"), ("strategy_config", "Hyperband", "Random")),
            (lambda: make(early_stopping_type="Auto"), ("early_stopping_type", "Auto", "Hyperband", "Off")),
            (lambda: make(objective_type="maximise"), ("objective_type", "maximise", "Maximize")),
            (lambda: make(objective_value="first"), ("objective_value", "first", "last", "best")),
            (lambda: make(max_jobs=0), ("max_jobs", 0, 1)),
            (lambda: make(random_seed=-5), ("random_seed", -5, 0)),
            (lambda: make(max_runtime_in_seconds=-5), ("max_runtime_in_seconds", -5, 1)),
            (lambda: make(max_wait=0), ("max_wait", 0, 1)),
            (lambda: make(max_wait=5, max_runtime_in_seconds=6), ("max_wait", 5, "max_runtime_in_seconds", 6)),
            (lambda: make(max_parallel_jobs=2.5), ("max_parallel_jobs", 2.5, 1)),
            (lambda: make(warm_start_config="x"), ("warm_start_config", "x", "WarmStartConfig")),
            (
                lambda: make(metric_definitions=[{"Name": "x", "Regex": "y"}]),
                ("metric_definitions", "XGBoostTrainer", "ScriptTrainer"),
            ),
            (lambda: make(metric_definitions="acc=(.*)"), ("metric_definitions", "acc=(.*)", "list")),
        ],
        ConfigurationError,
    )


@pytest.mark.parametrize(
    ("channels", "names"),
    [
        ({"trian": CHANNELS["train"]}, ("channels", "trian", "train")),
        ({"train": CHANNELS["train"]}, ("objective_metric_name", "validation:auc", "train", "validation")),
        ({"train": "no/such/file.csv", "validation": CHANNELS["validation"]}, ("train", "no/such/file.csv")),
    ],
)
def test_wrong_channels_are_named_before_anything_starts(channels: dict[str, Any], names: tuple[str, ...]) -> None:
    with refuses((ConfigurationError, DataError), field=names):
        make().fit(channels)


def test_a_metric_that_is_not_reported_names_the_nearest() -> None:
    trainer = XGBoostTrainer(hyperparameters=STATIC)
    tuner = HyperparameterTuner(trainer, "validaton:auc", RANGES, strategy="Hyperband", max_jobs=2)
    with refuses(ConfigurationError, field="objective_metric_name", value="validaton:auc", remedy="validation:auc"):
        tuner.fit(CHANNELS)


def test_nothing_to_describe_before_fit() -> None:
    with refuses(ConfigurationError, field="job", remedy=("fit()", "attach()")):
        make().describe()


def test_the_public_names_are_these() -> None:
    import hpo
    import trainers

    assert sorted(hpo.__all__) == [
        "Callback",
        "CategoricalParameter",
        "ContinuousParameter",
        "Email",
        "HyperbandStrategyConfig",
        "HyperparameterTuner",
        "HyperparameterTuningJobAnalytics",
        "IntegerParameter",
        "NormalParameter",
        "Prices",
        "StrategyConfig",
        "TrainingJob",
        "TuningJobCompletionCriteriaConfig",
        "WarmStartConfig",
        "WarmStartTypes",
        "Webhook",
        "train",
    ]
    assert all(hasattr(hpo, name) for name in hpo.__all__)
    assert all(hasattr(trainers, name) for name in trainers.__all__)


def test_definitions_of_a_tuner_are_those_of_its_program(tmp_path: Path) -> None:
    own, given = [{"Name": "loss", "Regex": "loss=(.*)"}], [{"Name": "acc", "Regex": "acc=(.*)"}]
    trainer = ScriptTrainer("train.py", source_dir=tmp_path, metric_definitions=own, hyperparameters={"epochs": 3})
    ranges = {"lr": ContinuousParameter(0.1, 0.2)}
    tuner = HyperparameterTuner(trainer, "acc", ranges, given)
    assert tuner.settings.estimator.options["metric_definitions"] == given
    assert tuner.settings.estimator.hyperparameters == {"epochs": 3}
    assert HyperparameterTuner(trainer, "loss", ranges).settings.estimator is trainer
    with refuses(ConfigurationError, field=("metric_definitions[0]", "acc"), value="acc="):
        HyperparameterTuner(trainer, "acc", ranges, [{"Name": "acc", "Regex": "acc="}])


def test_settings_are_attributes_that_are_checked_together_where_they_are_used() -> None:
    tuner = make(workers=0, max_jobs=3, max_wait=50)
    tuner.max_jobs, tuner.priority = 5, 2
    assert (tuner.max_jobs, tuner.priority, tuner.plan().trials) == (5, 2, 5)
    tuner.max_runtime_in_seconds = 100  # More than max_wait, as yet.
    tuner.max_wait = 200
    assert tuner.settings.options["max_wait"] == 200
    tuner.priority = 101
    with refuses(ConfigurationError, field="priority", value=101, remedy=("1", "100")):
        tuner.fit(CHANNELS)
    tuner.priority = 1
    tuner.ranges["max_depth"] = CategoricalParameter([-3])
    with refuses(ConfigurationError, field="max_depth", value=-3, remedy="0"):
        tuner.fit(CHANNELS)
    assert not hasattr(tuner, "nonsense")
    assert {"max_jobs", "priority", "estimator"} <= set(dir(tuner))


def test_the_first_argument_that_is_not_known_is_named() -> None:
    with refuses(ConfigurationError, field=("HyperparameterTuner", "zz")):
        make(workers=0, zz=1, aa=2, bb=3)
    assert make(workers=0, autotune=False).plan()
