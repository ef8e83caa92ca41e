"""The training functions of both networks; a unit of resource is as many rows, whatever the batch.

Hyperparameters of both: `lr`, `warm_up` (a part of all updates), `weight_decay`, `dropout`, and a batch size;
`max_norm`, that gradients are clipped to; `rows_per_unit`, `units` of the longest trial, which the schedule is laid out
for, and `validation_rows`, that a report is made of. The GPT's `size` is one of `gpt.SIZES`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from experiments.networks import convolutional, gpt
from experiments.networks.recipe import adamw, endless, loss_of, parts, scheduled, scores
from trainers import TrainContext
from trainers.pytorch import ModelPlan, Shard

GPT_NAME, IMAGES_NAME = "experiments.networks.training:train_gpt", "experiments.networks.training:train_images"
METRICS = ("validation:loss", "validation:accuracy", "train:loss")
TEXT_METRICS = (*METRICS, "validation:perplexity")
USUAL: dict[str, Any] = {"warm_up": 0.1, "weight_decay": 0.01, "dropout": 0.0, "max_norm": 1.0}


def train_gpt(context: TrainContext) -> None:
    """A GPT on rows of bytes, such as those of the dataset "python-stdlib"."""
    given = USUAL | context.hyperparameters
    validation = context.shard("validation", labels=torch.int64)
    model = gpt.GPT(gpt.SIZES[given["size"]], context=validation.features.shape[1], dropout=given["dropout"])
    _train(context, model, gpt.plan(), validation, text=True)


def train_images(context: TrainContext) -> None:
    """A convolutional network on grey images, such as MNIST's."""
    given = USUAL | context.hyperparameters
    validation = context.shard("validation", labels=torch.int64)
    model = convolutional.convolutional(validation.features.shape[1], dropout=given["dropout"])
    _train(context, model, convolutional.plan(), validation, text=False)


def _train(context: TrainContext, model: nn.Module, plan: ModelPlan, validation: Shard, *, text: bool) -> None:
    given = USUAL | context.hyperparameters
    batches = endless(context.prepare_data("train", labels=torch.int64))
    model = context.prepare_model(model, plan)
    optimizer = adamw(model, given["lr"], given["weight_decay"])
    assert context.batch is not None, "prepare_data asks for a batch size"
    updates = max(1, given["rows_per_unit"] // context.batch.global_batch_size)
    schedule = scheduled(optimizer, given["warm_up"], updates * given["units"])
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
        schedule.load_state_dict(context.checkpoint["schedule"])
    for _ in context.epochs():
        done = 0
        while done < updates:
            inputs, targets = parts(*next(batches), text=text)
            loss = loss_of(model(inputs), targets)
            if context.step(loss, optimizer, max_norm=given["max_norm"]):
                schedule.step()
                done += 1
        found = scores(context, model, validation, given["validation_rows"], text=text)
        metrics = {f"validation:{name}": value for name, value in found.items()}
        metrics["train:loss"] = context.sum(loss.detach()).item() / context.world_size
        if text:
            metrics["validation:perplexity"] = math.exp(min(found["loss"], 700.0))  # What float64 holds.
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        context.report(metrics, checkpoint=state)
