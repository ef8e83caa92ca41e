"""XGBoost trainings that are halted and continued."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.assignments import assignment as first
from tests.support.gangs import TRAIN, VALIDATION
from tests.support.process_gang import serve_alone
from trainers import Channel, XGBoostTrainer, storage
from trainers.gangs.messages import Assignment, Segment

PLAIN = {"objective": "binary:logistic", "eval_metric": "auc", "verbosity": 0}
STOP = 20


def program() -> Any:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=PLAIN)
    arrays = {"train": TRAIN[:600], "validation": VALIDATION[:200]}
    return trainer.program({name: Channel.of(array, name=name).place(0) for name, array in arrays.items()})


def assignment(folder: Path, **hyperparameters: Any) -> Assignment:
    return first(hyperparameters={**PLAIN, **hyperparameters}, stop=STOP, save_to=str(folder / f"{STOP:06d}.ubj"))


@pytest.fixture
def each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.xgboost.rounds.halting.LOOK_SECONDS", 0.0)


def trained(order: Assignment) -> Segment:
    [segment] = serve_alone(program(), order)
    assert isinstance(segment, Segment), segment
    return segment


def halted_and_continued(folder: Path, halt_at: int, **hyperparameters: Any) -> bytes:
    first = trained(assignment(folder, halt_at=halt_at, **hyperparameters))
    assert first.reached == len(first.reports) == halt_at - 1
    assert first.checkpoint == str(folder / f"{halt_at - 1:06d}.ubj")
    later = replace(assignment(folder, **hyperparameters), start=first.reached, checkpoint=first.checkpoint)
    return storage.read(trained(later).checkpoint)
