"""Training functions that report no objective, or no checkpoint, in each epoch, or never ask for their checkpoint."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner
from tests.support.refusals import mentions, refuses
from trainers import ScalingConfig, TorchTrainer, TrainContext
from trainers.errors import CheckpointError, WarmbandError

ROWS = (np.zeros((8, 1), "float32"), np.arange(8, dtype="float32"))
HERE = ScalingConfig(num_workers=0)

Metrics = Callable[[int, float], dict[str, Any]]


def job(folder: Path, function: Callable[[TrainContext], None], **options: Any) -> tuple[HyperparameterTuner, str]:
    """Tunes a function by Hyperband over rungs of 1, 3 and 9 epochs; what was printed."""
    printed = io.StringIO()
    tuner = HyperparameterTuner(
        TorchTrainer(function, scaling=HERE, hyperparameters={"epochs": 9}),
        "val/acc",
        {"lr": ContinuousParameter(0.01, 1.0)},
        **{"strategy": "Hyperband", "max_jobs": 9, "random_seed": 3, **options},
        storage_path=str(folder),
        store=f"sqlite:///{folder}/store.db",
        console=Console(file=printed, width=160),
    )
    tuner.fit({"train": ROWS})
    return tuner, printed.getvalue()


def weighed(metrics: Metrics, *, every: int = 1, asks: bool = True) -> Callable[[TrainContext], None]:
    """A function whose weight is the number of its epochs.

    Args:
        metrics: of an epoch, counted from 0, and the weight.
        every: epochs between checkpoints; 0 for none.
        asks: whether it goes on from its checkpoint.
    """

    def train(context: TrainContext) -> None:
        weight = torch.zeros(1)
        if asks and (state := context.checkpoint):
            weight = state["weight"].clone()
        for epoch in context.epochs():
            weight += 1
            kept = {"weight": weight.clone()} if every and (epoch + 1) % every == 0 else None
            context.report(metrics(epoch, weight.item() - context.hyperparameters["lr"]), checkpoint=kept)

    return train


def curves(tuner: HyperparameterTuner) -> dict[str, list[tuple[int, float]]]:
    """Units and values of each trial, relative to its learning rate."""
    rows = tuner.analytics().dataframe()
    assert set(rows.Status) <= {"Completed", "Stopped"}, rows.FailureReason.max()
    return {
        row.TrainingJobName: [(row.Resource, round(row.FinalObjectiveValue + row.lr, 3))] for row in rows.itertuples()
    }


@pytest.mark.parametrize(
    ("metrics", "value"),
    [
        (lambda epoch, value: {"val": {"acc": value}}, lambda unit: unit),
        (lambda epoch, value: {"val/acc": value} if epoch % 2 else {"loss": 1.0}, lambda unit: max(2, unit // 2 * 2)),
        (
            lambda epoch, value: {"val": {"acc": value if epoch % 2 == 0 else None}},
            lambda unit: (unit + 1) // 2 * 2 - 1,
        ),
    ],
)
def test_an_epoch_without_the_objective_has_the_value_before_it_or_the_first(
    tmp_path: Path, metrics: Metrics, value: Callable[[int], int]
) -> None:
    tuner, _ = job(tmp_path, weighed(metrics))
    for name, curve in curves(tuner).items():
        assert curve == [(unit, value(unit)) for unit, _ in curve], name
    assert tuner.best_estimator().model()["weight"].item() == 9


def test_an_objective_that_never_comes_is_an_error(tmp_path: Path) -> None:
    function = weighed(lambda epoch, value: {"loss": value})
    with refuses(WarmbandError, field=("loss", "val/acc"), value=9):
        job(tmp_path, function, max_jobs=2, strategy="Random")


@pytest.mark.parametrize(("every", "asks"), [(1, False), (0, True), (2, True)])
def test_a_function_that_begins_again_has_the_values_of_its_epochs(tmp_path: Path, every: int, asks: bool) -> None:
    tuner, printed = job(tmp_path, weighed(lambda epoch, value: {"val/acc": value}, every=every, asks=asks))
    for name, curve in curves(tuner).items():
        assert curve == [(unit, unit) for unit, _ in curve], name
    assert printed.count(" again, since") == 1
    best = tuner.best_estimator()
    if every:
        assert best.model()["weight"].item() in (8, 9)
    else:
        with pytest.raises(CheckpointError) as caught:
            best.model()
        mentions(str(caught.value), "checkpoint")
