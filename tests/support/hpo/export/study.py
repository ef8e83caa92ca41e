"""The trials of a record's job, and the URL of an Optuna study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpo.record.store import Store
from hpo.sagemaker.description import describe


def goal(folder: Path) -> str:
    return f"sqlite:///{folder}/study.db"


def trials_of(store: Store, name: str = "job") -> list[Any]:
    return [trial for trial in store.trials(name) if trial.number >= 0]


def best_of(store: Store, name: str = "job") -> dict[str, Any]:
    return describe(store.job(name), trials_of(store, name))["BestTrainingJob"]
