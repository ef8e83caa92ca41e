"""What a trainer refuses, records and restores, and a segment is trained with; and single trainings on a real gang."""

from __future__ import annotations

import pytest
from ray.train import ScalingConfig

from tests.support.trainers.trainer import CHANNELS, STATIC, make
from trainers import TrainingResult, XGBoostTrainer

SMALL = {"num_round": 6, "max_depth": 3}


@pytest.fixture(scope="module")
def results(ray_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> dict[int, TrainingResult]:
    """One training, by the workers that made it: one, which is this process, and two on Ray."""
    folder = str(tmp_path_factory.mktemp("runs"))
    here = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}), hyperparameters={**STATIC, **SMALL}
    )
    return {trainer.workers: trainer.fit(CHANNELS, storage_path=folder, seed=3) for trainer in (here, make(2, **SMALL))}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_training_gives_metrics_curve_cost_and_model(results: dict[int, TrainingResult], workers: int) -> None:
    import xgboost
    from sklearn.metrics import log_loss, roc_auc_score

    result = results[workers]
    names = ["validation:logloss", "validation:auc"]
    assert list(result.metrics) == list(result.curve.columns) == names
    assert list(result.curve.index) == [1, 2, 3, 4, 5, 6]
    assert result.curve.iloc[-1].to_dict() == result.metrics
    assert result.curve["validation:logloss"].is_monotonic_decreasing
    assert result.worker_seconds > result.training_seconds > 0
    assert result.trainer.workers == workers
    assert result.trainer.checkpoint == result.checkpoint

    booster = result.model()
    assert isinstance(booster, xgboost.Booster)
    assert booster.num_boosted_rounds() == 6
    validation = CHANNELS["validation"]
    predicted = booster.predict(xgboost.DMatrix(validation[:, 1:]))
    assert result.metrics["validation:auc"] == pytest.approx(roc_auc_score(validation[:, 0], predicted), abs=1e-12)
    assert result.metrics["validation:logloss"] == pytest.approx(log_loss(validation[:, 0], predicted), abs=1e-6)


def test_two_workers_learn_what_one_does(results: dict[int, TrainingResult]) -> None:
    """Not the same trees, since each sketches its own rows, and scores that differ by noise only."""
    one, two = (results[workers].metrics["validation:auc"] for workers in (1, 2))
    assert min(one, two) > 0.85
    assert one == pytest.approx(two, abs=0.02)
    assert results[1].checkpoint != results[2].checkpoint
