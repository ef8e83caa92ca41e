"""A training function on examples, which tests tune by name."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from trainers import TrainContext


def train(context: TrainContext) -> None:
    model = context.prepare_model(nn.Linear(48, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=context.hyperparameters["lr"])
    batches, validation = context.prepare_data("train"), context.prepare_data("validation", shuffle=False)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    for _ in context.epochs():
        for images, labels in batches:
            context.step(functional.cross_entropy(model(images.flatten(1) / 255), labels), optimizer)
        right = rows = 0
        with torch.no_grad():
            for images, labels in validation:
                right += int((model(images.flatten(1) / 255).argmax(1) == labels).sum())
                rows += len(labels)
        right, rows = context.sum(torch.tensor([right, rows])).tolist()
        context.report({"validation:accuracy": right / rows}, checkpoint={"model": model.state_dict()})
