"""The lineage of a registered model, and its model."""

from __future__ import annotations

import mlflow
import xgboost

from hpo.trackers.registry import Lineage

LINEAGE = Lineage(
    job="job",
    created_at=1.5,
    trial="job-003",
    resource=9,
    seed=7,
    hyperparameters={"lr": 0.5},
    metric="validation:loss",
    value=0.25,
    data={"train": "abc"},
    environment={"commit": "c0ffee", "warmband": "0.1.0"},
)


def loaded(uri: str, tracking_uri: str) -> xgboost.Booster:
    mlflow.set_tracking_uri(tracking_uri)
    mlflow.set_registry_uri(tracking_uri)
    try:
        return mlflow.xgboost.load_model(uri)
    finally:
        mlflow.set_tracking_uri(None)
        mlflow.set_registry_uri(None)
