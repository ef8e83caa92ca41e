"""A Ray gang that runs a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.gangs import Pool
from trainers import Channel, ScalingConfig, ScriptTrainer
from trainers.gangs.messages import Assignment, Segment
from trainers.gangs.program import Program

PROGRAMS = Path(__file__).parents[2] / "script" / "programs"
ROWS = (np.arange(12, dtype=np.float32).reshape(6, 2), np.arange(6) % 2)
ACCURACY = {"Name": "validation:accuracy", "Regex": r"acc=(\S+)"}


def programs(entry_point: str, **options: Any) -> Callable[[int], Program]:
    """Return a function that makes programs of a script."""

    def make(workers: int) -> Program:
        trainer = ScriptTrainer(
            entry_point,
            source_dir=PROGRAMS,
            scaling=ScalingConfig(num_workers=workers),
            **{"grace_period_s": 5, **options},
        )
        return trainer.program({"train": Channel.of(ROWS, name="train").place(workers)})

    return make


@pytest.fixture(scope="module")
def pool(ray_cluster: None) -> Iterator[Pool]:
    """A gang whose ranks wait for each other."""
    pool = Pool("ranks", program=programs("ranks.py", metric_definitions=[ACCURACY], report_timeout_s=5))
    try:
        pool.start(1)
        yield pool
    finally:
        pool.gangs.close()


def assignment(folder: Path, stop: int, before: Segment | None = None, **hyperparameters: Any) -> Assignment:
    """Of a trial, from where it was."""
    (folder / "job").mkdir(parents=True, exist_ok=True)
    place: Mapping[str, Any] = (
        {"start": before.reached, "checkpoint": before.checkpoint, "manifest": before.manifest}
        if before
        else {"start": 0, "checkpoint": None}
    )
    return Assignment(
        trial_id="trial",
        hyperparameters={"epochs": 6, **hyperparameters},
        seed=1,
        stop=stop,
        save_to=str(folder / "job" / "trial" / f"{stop:06d}"),
        **place,
    )


def served(pool: Pool, given: Assignment) -> Segment:
    """Serve an assignment on a gang; return its segment, and fail on an error."""
    (gang, *_) = pool.up
    answer = pool.serve(gang, given)
    assert answer.segment is not None, answer.error
    return answer.segment
