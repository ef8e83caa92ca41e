"""Trainers that note the probe's assignments."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from ray.train import ScalingConfig

from tests.support.boosting import STATIC
from trainers import XGBoostTrainer
from trainers.channels import Channel, PlacedChannel
from trainers.gangs.messages import Assignment, Report, Segment
from trainers.gangs.program import never
from trainers.xgboost.program import XGBoostProgram


def trainer(workers: int = 3, scaling: dict[str, Any] | None = None, **hyperparameters: Any) -> XGBoostTrainer:
    options = ScalingConfig(num_workers=workers, **(scaling or {}))
    return XGBoostTrainer(scaling=options, hyperparameters={**STATIC, **hyperparameters})


class Noting(XGBoostTrainer):
    """Notes which assignments it is asked to train, and until where; each may begin with a sleep."""

    asked: ClassVar[list[int]] = []
    sleeps: ClassVar[list[float]] = []

    def program(self, channels: dict[str, PlacedChannel]) -> XGBoostProgram:
        return NotingProgram(channels)


class NotingProgram(XGBoostProgram):
    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        Noting.asked.append(assignment.stop)
        time.sleep(Noting.sleeps.pop(0) if Noting.sleeps else 0.0)
        return super().train(assignment, on_report, halted)


@pytest.fixture
def noting() -> Noting:
    Noting.asked, Noting.sleeps = [], []
    return Noting(scaling=ScalingConfig(num_workers=3), hyperparameters=STATIC)


def csv(path: Path, rows: int) -> Channel:
    """A CSV file of numbers with many digits, of which no fixed length of a cell tells how many there are."""
    values = np.random.default_rng(0).normal(size=(rows, 4))
    values[:, 0] = values[:, 0] > 0
    pd.DataFrame(values, columns=list("yabc")).to_csv(path, index=False)
    return Channel.of(str(path))
