"""Layouts of shards and tensors train as one worker does with the same global batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.support.networks import assignment
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.layouts.sharding import (
    ended,
    gang,  # noqa: F401  # Fixtures.
    program,
)
from tests.support.transformer import PLAN, Transformer, loss_of, text
from trainers import DivergedError, ModelPlan, TrainContext, TrialError


def no_plan(context: TrainContext) -> None:
    context.prepare_model(Transformer())


def wrong_plan(context: TrainContext) -> None:
    context.prepare_model(Transformer(), ModelPlan(tensor={"blocks.*.ups": "colwise"}))


def wrong_blocks(context: TrainContext) -> None:
    context.prepare_model(Transformer(), ModelPlan(blocks=(nn.Conv2d,)))


def wrong_style(context: TrainContext) -> None:
    context.prepare_model(Transformer(), ModelPlan(tensor={"blocks.*.before": "colwise"}))


def odd_width(context: TrainContext) -> None:
    context.prepare_model(nn.Sequential(nn.Linear(3, 7)), ModelPlan(tensor={"0": "colwise"}))


def early_optimizer(context: TrainContext) -> None:
    model = nn.Sequential(nn.Linear(3, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    context.step(context.prepare_model(model)(torch.ones(2, 3)).sum(), optimizer)


def two_optimizers(context: TrainContext) -> None:
    models = [context.prepare_model(nn.Sequential(nn.Linear(3, 4))) for _ in range(2)]
    for model in models:
        context.step(model(torch.ones(2, 3)).sum(), torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize(
    ("function", "layout", "names"),
    [
        (no_plan, "tensor=4", ("tensor=4", "Transformer", "ModelPlan(tensor=", "colwise", "rowwise")),
        (wrong_plan, "tensor=4", ("ModelPlan(tensor=...)", "blocks.*.ups", "Transformer", "blocks.3.up")),
        (wrong_blocks, "shard=4", ("ModelPlan(blocks=...)", "Transformer", "Conv2d")),
        (wrong_style, "tensor=2", ("blocks.0.before", "LayerNorm", "colwise", "Linear", "Embedding", "ParallelStyle")),
        (odd_width, "tensor=4", ("ModelPlan(tensor=...)", "'0'", "7", "tensor=4", "4")),
        (early_optimizer, "shard=4", ("shard=4", "optimizer", "context.prepare_model", "model.parameters()")),
        (two_optimizers, "shard=4", ("shard=4", "optimizers", "groups")),
    ],
)
def test_what_cannot_be_is_told_before_training(
    gang: ProcessGang, tmp_path: Path, function: Any, layout: str, names: tuple[str, ...]
) -> None:
    for answer in gang.run(program(function, layout), assignment(tmp_path, stop=1)):
        assert isinstance(answer[0], TrialError)
        mentions(str(answer[0]), *names)


def makes_nan(context: TrainContext) -> None:
    model = context.prepare_model(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        # On one worker alone: all of them see it.
        scale = float("nan") if context.rank == 1 else 1.0
        context.step(model(torch.ones(2, 3)).sum() * scale, optimizer)
        context.report({"train:loss": 1.0}, checkpoint={"none": 0})


def test_gradients_that_are_not_finite_on_one_worker_end_the_trial_on_all(gang: ProcessGang, tmp_path: Path) -> None:
    for answer in gang.run(program(makes_nan, "shard=4"), assignment(tmp_path, stop=1)):
        assert isinstance(answer[0], DivergedError)
        mentions(str(answer[0]), "gradients", "0")


def evaluates_one_row(context: TrainContext) -> None:
    """What is left of a pass: of the first worker alone, and shards are gathered from all."""
    model = context.prepare_model(Transformer().double(), PLAN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = context.prepare_data(DataLoader(TensorDataset(text(5)), batch_size=1))
    for _ in context.epochs():
        (tokens,) = next(first := iter(batches))
        context.step(loss_of(model, tokens), optimizer)
        with torch.no_grad():
            losses = [loss_of(model, tokens) for (tokens,) in batches]
        del first
        rows = context.sum(float(len(losses)))
        context.report({"train:rows": float(rows)}, checkpoint={"none": 0})


def test_a_worker_without_a_batch_goes_along_in_an_evaluation(gang: ProcessGang, tmp_path: Path) -> None:
    (segment,) = ended(gang.run(program(evaluates_one_row, "shard=4"), assignment(tmp_path, stop=1)))
    assert segment.reports[0].metrics["train:rows"] == 1.0
