"""Several estimators in one job: one budget, one best, and each trains what it trains alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from hpo import (
    ContinuousParameter,
    HyperbandStrategyConfig,
    HyperparameterTuner,
    IntegerParameter,
    StrategyConfig,
)
from hpo.cli import app
from hpo.record.store import Store
from tests.support.hpo.estimators import CHANNELS, estimators
from trainers import TorchTrainer, XGBoostTrainer
from trainers.parts import ESTIMATOR
from trainers.registry import trainer_from_json
from trainers.several import SeveralTrainers


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
