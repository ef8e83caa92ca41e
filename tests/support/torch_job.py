"""A training function that tests tune."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from trainers import TrainContext


def train(context: TrainContext) -> None:
    words = context.hyperparameters
    model = context.prepare_model(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=words["lr"], momentum=0.9)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    batches = context.prepare_data("train", labels=torch.int64)
    validation = context.shard("validation", labels=torch.int64)
    for _ in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        with torch.no_grad():
            right = (model(validation.features).argmax(1) == validation.labels).sum()
        right, rows = context.sum(torch.stack([right, torch.tensor(len(validation))])).tolist()
        context.report(
            {"validation:accuracy": right / rows},
            checkpoint={"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        )
