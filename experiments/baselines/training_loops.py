"""One training loop twice: in plain PyTorch, and as a training function of this project; and what they train."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from experiments.networks import convolutional, gpt
from experiments.networks.recipe import adamw, loss_of, parts
from trainers import TrainContext
from trainers.pytorch import ModelPlan

TRAIN = "experiments.baselines.training_loops:train"
PROCESSOR = "train:processor_seconds"
LEARNING = {"lr": 0.05, "momentum": 0.9, "shuffle": True}
BATCH = 100
HIDDEN = (128, 64, 10)
"""Of the small network: what it learns by, rows of a worker's batch, and the layers behind its inputs."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """What a loop trains.

    Args:
        model: makes it, of the hyperparameters.
        optimizer: of a model that is ready, and the hyperparameters.
        text: see `experiments.networks.recipe.parts`.
        plan: how workers share it.
    """

    model: Callable[[Mapping[str, Any]], nn.Module]
    optimizer: Callable[[nn.Module, Mapping[str, Any]], Optimizer]
    text: bool = False
    plan: ModelPlan | None = None


def layers(widths: Sequence[int]) -> nn.Module:
    """A fully connected network with ReLU between its layers."""
    made: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        made += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*made[:-1])


def _momentum(model: nn.Module, given: Mapping[str, Any]) -> Optimizer:
    return SGD(model.parameters(), lr=given["lr"], momentum=given["momentum"])


def _decayed(model: nn.Module, given: Mapping[str, Any]) -> Optimizer:
    return adamw(model, given["lr"], given["weight_decay"])


NETWORKS = {
    "layers": Network(model=lambda given: layers(given["widths"]), optimizer=_momentum),
    "convolutional": Network(
        model=lambda given: convolutional.convolutional(given["columns"]),
        optimizer=_decayed,
        plan=convolutional.plan(),
    ),
    "gpt": Network(
        model=lambda given: gpt.GPT(gpt.SIZES[given["size"]], context=given["columns"]),
        optimizer=_decayed,
        text=True,
        plan=gpt.plan(),
    ),
}
"""By the hyperparameter `network`; without one, it is "layers". `columns` are those of a row."""


def network_of(given: Mapping[str, Any]) -> Network:
    """The network of hyperparameters."""
    return NETWORKS[given.get("network", "layers")]


def train(context: TrainContext) -> None:
    """The loop as a training function; `network`, what that takes, and `shuffle` are hyperparameters.

    It reports the last loss, and the seconds of processors that this process has taken since it was called.
    """
    given, began = context.hyperparameters, time.process_time()
    network = network_of(given)
    batches = context.prepare_data("train", shuffle=given["shuffle"], labels=torch.int64)
    model = context.prepare_model(network.model(given), network.plan)
    optimizer = network.optimizer(model, given)
    for _ in context.epochs():
        for features, labels in batches:
            inputs, targets = parts(features, labels, text=network.text)
            loss = loss_of(model(inputs), targets)
            context.step(loss, optimizer)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        metrics = {"train:loss": loss.item(), PROCESSOR: time.process_time() - began}
        context.report(metrics, checkpoint=state)


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
    text: bool = False,
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
        text: see `experiments.networks.recipe.parts`.
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
            inputs, targets = parts(x, y, text=text)
            optimizer.zero_grad()
            with autocast:
                outputs = model(inputs)
            loss = loss_of(outputs.float(), targets)
            loss.backward()
            optimizer.step()
        last = loss.item()
    return last
