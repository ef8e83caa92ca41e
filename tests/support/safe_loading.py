"""A checkpoint that attacks, and trainings that load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.assignments import assignment
from trainers import Trainer
from trainers.gangs.messages import Assignment


class Attack:
    """Pickles to a call that leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def going_on(trainer: Trainer, checkpoint: Path, folder: Path) -> Assignment:
    """One more unit from a checkpoint, as a rung of a job goes on from it."""
    saves = {"checkpoint": str(checkpoint), "save_to": str(folder / "next")}
    return assignment(hyperparameters=trainer.hyperparameters, start=1, stop=2, **saves)


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    random = np.random.default_rng(0)
    features = random.normal(size=(40, 2)).astype(np.float32)
    both = (features, (features[:, 0] > 0).astype(np.float32))
    return {"train": both, "validation": both}
