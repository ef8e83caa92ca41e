"""A wall clock that is set while a job runs: nothing that is measured follows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.driving import CHANNELS
from tests.support.hpo.jobs.clock_jumps import (
    HOUR,
    JUMPS,
    Wall,
    wall,  # noqa: F401  # Fixtures.
)
from trainers import XGBoostTrainer, steady


@JUMPS
def test_a_training_alone_is_billed_what_it_took(wall: Wall, tmp_path: Path, seconds: float) -> None:
    class Jumps(XGBoostTrainer):
        @contextmanager
        def gangs(self, *arguments: Any, **options: Any) -> Iterator[Any]:
            with super().gangs(*arguments, **options) as found:
                found.want({1: 1}, None)
                wall.ahead = seconds
                yield found

    trainer = Jumps(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
        hyperparameters={"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3},
    )
    began = time.monotonic()
    result = trainer.fit(CHANNELS, storage_path=str(tmp_path))
    assert 0.0 < result.worker_seconds <= time.monotonic() - began


def test_the_clock_is_set_by_the_wall_clock_when_a_measurement_begins_and_never_in_one(wall: Wall) -> None:
    with steady.measuring():
        assert steady.now() == pytest.approx(time.time(), abs=1.0)
        before = steady.now()
        wall.ahead = HOUR
        with steady.measuring():
            assert before <= steady.now() < before + HOUR / 2
        assert before <= steady.now() < before + HOUR / 2
    with steady.measuring():
        assert steady.now() == pytest.approx(time.time(), abs=1.0)
