"""A job of several estimators on a real gang that loses a worker: the answer of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.exact_torch_job import train
from trainers import ScalingConfig, TorchTrainer, XGBoostTrainer
from trainers.datasets import load
from trainers.parts import ESTIMATOR

pytestmark = pytest.mark.fault

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
GANG = ScalingConfig(num_workers=2)
DIGITS = load("digits")
CHANNELS = {
    "train": (DIGITS.train[0][:480], DIGITS.train[1][:480]),
    "validation": (DIGITS.validation[0][:120], DIGITS.validation[1][:120]),
}
BOOSTED = {"objective": "multi:softprob", "num_class": 10, "eval_metric": "mlogloss", "max_depth": 3, "nthread": 1}


def tuned(scaling: ScalingConfig, name: str, **static: Any) -> dict[str, tuple[Any, ...]]:
    """What each trial came to, by what is left of its name without the job's."""
    network = TorchTrainer(train, scaling=scaling, hyperparameters={"lr": 0.1, "global_batch_size": 40, **static})
    tuner = HyperparameterTuner.create(
        {"network": network, "boosted": XGBoostTrainer(scaling=scaling, hyperparameters=BOOSTED)},
        {"network": "validation:loss", "boosted": "validation:mlogloss"},
        {
            "network": {"lr": ContinuousParameter(0.01, 0.5, "Logarithmic")},
            "boosted": {"eta": ContinuousParameter(0.01, 0.5, "Logarithmic")},
        },
        objective_type="Minimize",
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1, suggestions="random")),
        max_jobs=6,
        random_seed=5,
        console=False,
    )
    tuner.fit(CHANNELS, job_name=name)
    with Store() as store:
        rows = [row for row in store.trials(name) if row.number >= 0]
    best = tuner.best_estimator()
    assert best.model() is not None
    return {
        row.trial_id.removeprefix(name): (row.hyperparameters[ESTIMATOR], row.status, row.resource, row.objective)
        for row in rows
    }


def test_one_gang_serves_all_and_loses_a_worker(ray_cluster: None, tmp_path: Path) -> None:
    (tmp_path / "kill").touch()
    here = tuned(HERE, "here")
    there = tuned(GANG, "there", kill=str(tmp_path / "kill"))
    assert not (tmp_path / "kill").exists(), "a worker was killed"
    assert {kind for kind, *_ in here.values()} == {"network", "boosted"}
    assert [row[:3] for row in there.values()] == [row[:3] for row in here.values()]
    for trial, (kind, *_, loss) in here.items():
        assert there[trial][3] == pytest.approx(loss, abs=1e-10 if kind == "network" else 0.05)
