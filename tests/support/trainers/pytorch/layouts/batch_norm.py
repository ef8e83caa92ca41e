"""A network with batch normalisation, and its training function."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from trainers import ModelPlan


def network(images: bool) -> nn.Module:
    """Normalisations of images, and of rows where asked; a cumulative average, none, and one without parameters."""
    rows = [nn.BatchNorm1d(8, affine=False), nn.Tanh(), nn.BatchNorm1d(8, track_running_stats=False)]
    return nn.Sequential(
        nn.Unflatten(1, (2, 3)),
        nn.Conv1d(2, 4, 2),
        nn.BatchNorm1d(4, momentum=None),
        nn.Flatten(),
        nn.Linear(8, 8),
        *([] if images else rows),
        nn.Linear(8, 2),
    ).double()


def normalised(context) -> None:
    words = context.hyperparameters
    model = network(words.get("images", False))
    plan = ModelPlan(sync_batch_norm=words.get("sync", True), recompute=words.get("recompute", False))
    model = context.prepare_model(model, plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        model.train()
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        model.eval()
        with torch.no_grad():
            rows = context.shard("train").features.double()
            loss = context.sum(model(rows).square().sum())
        found = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loss": loss}
        context.report({}, checkpoint=found)
