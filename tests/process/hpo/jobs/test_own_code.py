"""Trainers and training functions of a user's own: a record runs nothing of them that was not allowed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.support.driving import CHANNELS
from tests.support.own_jobs import (
    HERE,
    RANGES,
    STATIC,
    status,
    tuner,
)


def test_a_trainer_of_a_users_own_runs_in_the_background(package_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package_folder))
    own = import_module("shop.training").Churn(scaling=HERE, hyperparameters=STATIC, floor=0.5)
    made = tuner(package_folder, own, RANGES)
    made.fit(CHANNELS, job_name="job", wait=False)
    made.wait()
    assert status() == "Completed"
    assert made.best_estimator().options == {"floor": 0.5}
