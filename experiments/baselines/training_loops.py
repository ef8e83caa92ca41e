"""One training loop twice: in plain PyTorch, and as a training function of this project."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it
from torch.optim import SGD, Optimizer

from trainers import TrainContext

TRAIN = "experiments.baselines.training_loops:train"


def layers(widths: Sequence[int]) -> nn.Module:
    """A fully connected network with ReLU between its layers."""
    made: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        made += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*made[:-1])


def train(context: TrainContext) -> None:
    """The loop as a training function; the widths, `lr`, `momentum` and `shuffle` are hyperparameters."""
    given = context.hyperparameters
    batches = context.prepare_data("train", shuffle=given["shuffle"], labels=torch.int64)
    model = context.prepare_model(layers(given["widths"]))
    optimizer = SGD(model.parameters(), lr=given["lr"], momentum=given["momentum"])
    for _ in context.epochs():
        for features, labels in batches:
            loss = F.cross_entropy(model(features), labels)
            context.step(loss, optimizer)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"train:loss": loss.item()}, checkpoint=state)


def plain(
    model: nn.Module,
    optimizer: Optimizer,
    features: Tensor,
    labels: Tensor,
    *,
    batch: int,
    epochs: int,
    shuffle: bool = True,
    autocast: AbstractContextManager[Any] | None = None,
) -> float:
    """The loop by hand, on rows that are tensors already; returns the last loss.

    Args:
        model: to be trained, wrapped for distribution where there is one.
        optimizer: of its parameters.
        features: of this process's rows.
        labels: of these.
        batch: rows of an update on this process.
        epochs: passes over the rows.
        shuffle: another order in each pass.
        autocast: what the model runs in, for mixed precision.
    """
    autocast = autocast or nullcontext()
    for _ in range(epochs):
        order = torch.randperm(len(labels)).to(labels.device) if shuffle else None
        for start in range(0, len(labels), batch):
            chosen = slice(start, start + batch)
            if order is None:
                x, y = features[chosen], labels[chosen]
            else:
                x, y = features.index_select(0, order[chosen]), labels.index_select(0, order[chosen])
            optimizer.zero_grad()
            with autocast:
                outputs = model(x)
            loss = F.cross_entropy(outputs.float(), y)
            loss.backward()
            optimizer.step()
        last = loss.item()
    return last
