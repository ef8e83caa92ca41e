"""Several estimators in one job: one budget, one best, and each trains what it trains alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from optuna.samplers import TPESampler
from typer.testing import CliRunner

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.cli import app
from hpo.estimators import inputs_of
from hpo.job_file.models import JobSpec
from hpo.record.store import Store
from tests.support.refusals import refuses, refuses_each
from tests.support.torch_job import train
from trainers import ConfigurationError, ScalingConfig, TorchTrainer, XGBoostTrainer
from trainers.parts import ESTIMATOR
from trainers.registry import trainer_from_json
from trainers.several import SeveralTrainers

_STREAM = np.random.default_rng(3)
_ROWS = _STREAM.normal(size=(200, 64)).astype(np.float32)
_LABELS = (np.argmax(_ROWS[:, :10], axis=1)).astype(np.float32)
CHANNELS = {"train": (_ROWS[:150], _LABELS[:150]), "validation": (_ROWS[150:], _LABELS[150:])}
BOOSTED = {"objective": "multi:softprob", "num_class": 10, "eval_metric": "merror", "nthread": 1}


def estimators() -> dict[str, Any]:
    return {
        "boosted": XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**BOOSTED, "num_round": 4}),
        "network": TorchTrainer(
            train, scaling=ScalingConfig(num_workers=0), hyperparameters={"epochs": 3, "global_batch_size": 50}
        ),
    }


def tuner(folder: Path, **changes: Any) -> HyperparameterTuner:
    arguments: dict[str, Any] = {
        "strategy": "Hyperband",
        "strategy_config": StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        "max_jobs": 12,
        "random_seed": 4,
        "store": f"sqlite:///{folder}/store.db",
        "storage_path": str(folder),
        "console": False,
        **changes,
    }
    return HyperparameterTuner.create(
        estimators(),
        {"boosted": "validation:merror", "network": "validation:accuracy"},
        {
            "boosted": {"eta": ContinuousParameter(0.01, 1, "Logarithmic"), "max_depth": IntegerParameter(1, 6)},
            "network": {"lr": ContinuousParameter(0.001, 1, "Logarithmic")},
        },
        **arguments,
    )


@pytest.mark.parametrize("strategy", ["Hyperband", "Bayesian"])
def test_trials_of_all_share_one_budget(tmp_path: Path, strategy: str) -> None:
    config = {} if strategy == "Hyperband" else {"strategy_config": None}
    job = tuner(tmp_path, strategy=strategy, **config)
    job.fit(CHANNELS, job_name="both")
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        trials = [trial for trial in store.trials("both") if trial.number >= 0]
    assert len(trials) == 12
    kinds = {trial.hyperparameters[ESTIMATOR] for trial in trials}
    assert kinds == {"boosted", "network"}
    for trial in trials:
        own = trial.hyperparameters[ESTIMATOR]
        assert set(trial.hyperparameters) == {ESTIMATOR} | (
            {"boosted.eta", "boosted.max_depth"} if own == "boosted" else {"network.lr"}
        )
        assert trial.status in ("Completed", "Stopped"), trial.failure_reason
        if strategy == "Bayesian":
            assert trial.resource == (4 if own == "boosted" else 3)
    best = job.best_estimator()
    assert type(best) is (
        XGBoostTrainer if job.describe()["BestTrainingJob"]["TrainingJobDefinitionName"] == "boosted" else TorchTrainer
    )
    assert best.model() is not None


def test_its_description_and_its_record_have_each_estimator(tmp_path: Path) -> None:
    job = tuner(tmp_path)
    job.fit(CHANNELS, job_name="both")
    boosted, network = job.describe()["TrainingJobDefinitions"]
    assert boosted["DefinitionName"] == "boosted"
    assert [each["Name"] for each in boosted["HyperParameterRanges"]["ContinuousParameterRanges"]] == ["eta"]
    assert network["TuningObjective"] == {"Type": "Maximize", "MetricName": "validation:accuracy"}
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        spec = store.job("both").spec
    again = trainer_from_json(spec["estimator"], allow_code=True)
    assert isinstance(again, SeveralTrainers)
    attached = HyperparameterTuner.attach("both", store=f"sqlite:///{tmp_path}/store.db", allow_code=True)
    assert attached.settings.ranges == job.settings.ranges
    assert attached.best_estimator().hyperparameters == job.best_estimator().hyperparameters


def test_inputs_by_estimator_are_taken_if_they_are_the_same() -> None:
    several = SeveralTrainers(estimators())
    assert inputs_of(several, {"boosted": CHANNELS, "network": CHANNELS}) is CHANNELS
    assert inputs_of(several, CHANNELS) is CHANNELS
    other = {**CHANNELS, "train": "other.csv"}
    with refuses(ConfigurationError, field=("inputs", "network", "boosted"), remedy="dict"):
        inputs_of(several, {"boosted": CHANNELS, "network": other})
    with refuses(ConfigurationError, field="inputs", value="bosted", remedy=("train", "boosted", "network")):
        inputs_of(several, {"bosted": CHANNELS})


def test_what_is_missing_of_an_estimator_is_named() -> None:
    objectives = dict.fromkeys(["boosted", "network"], "validation:x")

    def create(objectives: Any, ranges: Any) -> HyperparameterTuner:
        return HyperparameterTuner.create(estimators(), objectives, ranges)

    refuses_each(
        [
            (
                lambda: create({"boosted": "validation:merror"}, {"boosted": {}, "network": {}}),
                ("objective_metric_name_dict", {"boosted": "validation:merror"}, "network"),
            ),
            (lambda: create(objectives, {"boosted": {}}), ("hyperparameter_ranges_dict", {"boosted": {}}, "network")),
            (
                lambda: create(objectives, {"boosted": {}, "network": 3}),
                ("hyperparameter_ranges_dict['network']", 3, "dict"),
            ),
        ],
        ConfigurationError,
    )


def test_what_is_of_another_kind_is_named() -> None:
    def create(**changes: Any) -> HyperparameterTuner:
        given: dict[str, Any] = {
            "estimator_dict": estimators(),
            "objective_metric_name_dict": dict.fromkeys(["boosted", "network"], "validation:x"),
            "hyperparameter_ranges_dict": {"boosted": {}, "network": {}},
            **changes,
        }
        return HyperparameterTuner.create(**given, autotune=True, console=False)

    kept = "hyperparameters_to_keep_static_dict"
    refuses_each(
        [
            (lambda: create(estimator_dict=None), ("estimator_dict", None, "dict")),
            (lambda: create(estimator_dict={}), ("estimator_dict", {}, "dict")),
            (
                lambda: create(hyperparameter_ranges_dict={"boosted": {"eta": (0.1, 1)}, "network": {}}),
                ("hyperparameter_ranges['boosted.eta']", (0.1, 1), "ContinuousParameter"),
            ),
            (lambda: create(hyperparameters_to_keep_static_dict=["boosted"]), (kept, ["boosted"], "dict")),
            (
                lambda: create(hyperparameters_to_keep_static_dict={"boosted": "eta"}),
                (f"{kept}['boosted']", "'eta'", "list"),
            ),
            (
                lambda: create(hyperparameters_to_keep_static_dict={"boosted": None}),
                (f"{kept}['boosted']", None, "list"),
            ),
        ],
        ConfigurationError,
    )


def test_a_job_file_has_several_trainers() -> None:
    trainer = {"type": "xgboost", "num_workers": 0, "hyperparameters": {**BOOSTED, "num_round": 3}}
    spec = JobSpec.model_validate(
        {
            "data": {"dataset": "bank-marketing-synthetic"},
            "trainer": {"type": "several", "trainers": {"deep": trainer, "flat": trainer}},
            "tuning": {
                "objective_metric_name": "validation:merror",
                "objective_type": "Minimize",
                "ranges": {"deep.max_depth": {"type": "integer", "min": 4, "max": 9}},
            },
        }
    )
    made = spec.arguments()
    assert isinstance(made["estimator"], SeveralTrainers)
    assert set(made["hyperparameter_ranges"]) == {ESTIMATOR, "deep.max_depth"}


def test_a_job_file_of_several_trainers_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path))
    for name, stream in (("train", 1), ("validation", 2)):
        rows = np.random.default_rng(stream).normal(size=(60, 3))
        rows[:, 0] = rows[:, 1] > 0
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",")
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3}
    trainer = {"type": "xgboost", "num_workers": 0, "hyperparameters": static}
    job = {
        "name": "both",
        "data": {"channels": {name: {"path": str(tmp_path / f"{name}.csv")} for name in ("train", "validation")}},
        "trainer": {"type": "several", "trainers": {"deep": trainer, "flat": trainer}},
        "tuning": {
            "objective_metric_name": "validation:auc",
            "strategy": "Random",
            "max_jobs": 4,
            "random_seed": 2,
            "ranges": {"deep.max_depth": {"type": "integer", "min": 4, "max": 9}},
        },
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    done = CliRunner().invoke(app, ["tune", str(tmp_path / "job.yaml")])
    assert done.exit_code == 0, done.output
    with Store() as store:
        tried = [trial.hyperparameters for trial in store.trials("both") if trial.number >= 0]
    assert {each[ESTIMATOR] for each in tried} == {"deep", "flat"}
    assert all(("deep.max_depth" in each) == (each[ESTIMATOR] == "deep") for each in tried)


@pytest.mark.parametrize("options", [{"autotune": True}, {"strategy": "Random"}, {"searcher": TPESampler}])
def test_an_estimator_that_says_no_length_is_named(options: dict[str, Any]) -> None:
    here = ScalingConfig(num_workers=0)
    without = {"boosted": XGBoostTrainer(scaling=here, hyperparameters=BOOSTED), "network": estimators()["network"]}
    with refuses(ConfigurationError, field="boosted.num_round", remedy="num_round") as raised:
        HyperparameterTuner.create(
            without,
            {"boosted": "validation:merror", "network": "validation:accuracy"},
            {"boosted": {}, "network": {"lr": ContinuousParameter(0.001, 1)}},
            **options,
        )
    assert "network.epochs" not in str(raised.value), "it is given"


def test_autotune_chooses_ranges_of_each() -> None:
    boosted = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**BOOSTED, "num_round": 40})
    job = HyperparameterTuner.create(
        {"deep": boosted, "flat": boosted},
        dict.fromkeys(["deep", "flat"], "validation:merror"),
        {"deep": {"eta": ContinuousParameter(0.1, 0.2)}, "flat": {}},
        {"flat": ["num_class"]},
        autotune=True,
        console=False,
    )
    ranges = job.settings.ranges
    assert ranges["deep.eta"] == ContinuousParameter(0.1, 0.2, when={ESTIMATOR: ["deep"]})
    assert ranges["flat.max_depth"].when == {ESTIMATOR: ["flat"]}
    with refuses(ConfigurationError, field="hyperparameters_to_keep_static_dict", value="flt", remedy=("deep", "flat")):
        HyperparameterTuner.create(
            {"deep": boosted, "flat": boosted},
            dict.fromkeys(["deep", "flat"], "validation:merror"),
            {"deep": {}, "flat": {}},
            {"flt": ["eta"]},
            autotune=True,
        )
