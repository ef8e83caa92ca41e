"""XGBoost on workers that share no histograms: a model for each worker's rows, and their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray.train import ScalingConfig

from experiments.shared import blog
from trainers import Channel, XGBoostTrainer
from trainers.datasets import Dataset


@dataclass(frozen=True, kw_only=True)
class WithoutSharing:
    """AUCs on the validation rows after the last round.

    Args:
        whole: of one model of all rows.
        alone: of each worker's own model, of its shard.
        averaged: of the mean of the workers' predictions.
        mean_of_parts: the first model's AUC on each worker's part of the validation rows, averaged: how XGBoost's own
            distributed evaluation arrives at an AUC.
    """

    whole: float
    alone: list[float]
    averaged: float
    mean_of_parts: float


def measure(dataset: Dataset, workers: int, rounds: int, seed: int, folder: Path) -> WithoutSharing:
    """Trains a model of all rows and one of each worker's, in this process.

    Args:
        dataset: direct-marketing rows.
        workers: among which rows are dealt as gangs deal them: row i to worker i modulo their number.
        rounds: of each model.
        seed: of each training.
        folder: for the models.
    """
    train, validation = (_table(rows) for rows in (dataset.train, dataset.validation))
    labels = validation[1]

    def scores(rows: slice) -> NDArray[np.float32]:
        import xgboost

        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
            hyperparameters={**blog.STATIC, "num_round": rounds},
        )
        given = {"train": (train[0][rows], train[1][rows]), "validation": validation}
        booster = trainer.fit(given, storage_path=str(folder), seed=seed).model()
        predicted: NDArray[np.float32] = booster.predict(xgboost.DMatrix(validation[0]))
        return predicted

    whole = scores(slice(None))
    parts = [scores(slice(rank, None, workers)) for rank in range(workers)]
    return WithoutSharing(
        whole=_auc(labels, whole),
        alone=[_auc(labels, part) for part in parts],
        averaged=_auc(labels, np.mean(parts, axis=0)),
        mean_of_parts=mean_of_parts(labels, whole, workers),
    )


def mean_of_parts(labels: NDArray[Any], scores: NDArray[Any], workers: int) -> float:
    """The mean of the AUCs of each worker's part of some rows; a part without both classes has none and is left out."""
    parts = [(labels[rank::workers], scores[rank::workers]) for rank in range(workers)]
    known = [_auc(*part) for part in parts if len(np.unique(part[0])) == 2]
    return sum(known) / len(known) if known else math.nan


def _table(rows: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features and labels, as arrays: a shard's columns need no names."""
    table = Channel.of(rows).read_whole()
    return np.asarray(table.features), table.labels


def _auc(labels: NDArray[Any], scores: NDArray[Any]) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, scores))
