"""A training function with schedules of learning rates."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

TOTAL = 40


def warm_cosine(optimizer):
    warm = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=7)
    return lr_scheduler.SequentialLR(optimizer, [warm, lr_scheduler.CosineAnnealingLR(optimizer, TOTAL - 7)], [7])


def by_lambda(optimizer):
    return lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 9) * 0.5 * (1 + math.cos(step / TOTAL)))


SCHEDULES = {
    "one cycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=TOTAL),
    "warm cosine": warm_cosine,
    "lambda": by_lambda,
    "restarts": lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 6, T_mult=2),
    "plateau": lambda optimizer: lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.05),
}


def train(context) -> None:
    """A schedule by steps, or by what was measured; an exponential average of weights, and a shadow of one's own."""
    words = context.hyperparameters
    model = context.prepare_model(
        nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    )
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    shadow = {name: value.detach().clone() for name, value in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = SCHEDULES[words["schedule"]](optimizer)
    parts = {"model": model, "average": average, "optimizer": optimizer, "scheduler": scheduler}
    batches = context.prepare_data("train", labels=torch.int64)
    rates = []
    if context.checkpoint is not None:
        for name, part in parts.items():
            part.load_state_dict(context.checkpoint[name])
        shadow, rates = context.checkpoint["shadow"], [*context.checkpoint["rates"]]
    for _ in context.epochs():
        losses = []
        for features, labels in context.steps(batches):
            loss = functional.cross_entropy(model(features), labels)
            rates.append(optimizer.param_groups[0]["lr"])
            context.step(loss, optimizer)
            losses.append(loss.detach())
            if words["schedule"] != "plateau":
                scheduler.step()
            average.update_parameters(model)
            with torch.no_grad():
                for name, value in model.named_parameters():
                    shadow[name].lerp_(value, 0.1)
        mean = context.sum(torch.stack(losses).mean()) / context.world_size
        if words["schedule"] == "plateau":
            scheduler.step(float(mean))
        found = {name: part.state_dict() for name, part in parts.items()}
        context.report({"train:loss": float(mean)}, checkpoint={**found, "shadow": shadow, "rates": rates})


def alike(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other) or one is other
