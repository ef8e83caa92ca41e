"""A training function that reports by steps."""

from __future__ import annotations

import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

HERE = ScalingConfig(num_workers=0)


def train(context) -> None:
    """Dropout and shuffled rows, a schedule over steps, an evaluation at each report; rows of every update are told."""
    words = context.hyperparameters
    model = context.prepare_model(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=words.get("total", 60))
    batches = context.prepare_data("train", labels=torch.int64)
    evaluated = context.prepare_data("train", shuffle=False, labels=torch.int64)
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    rates, right = [], 0
    if context.checkpoint is not None:
        for name, part in parts.items():
            part.load_state_dict(context.checkpoint[name])
        rates = [*context.checkpoint["rates"]]
    for _ in context.epochs():
        model.train()
        for features, labels in context.steps(batches):
            rates.append(optimizer.param_groups[0]["lr"])
            if context.step(functional.cross_entropy(model(features), labels), optimizer):
                scheduler.step()
        model.eval()
        with torch.no_grad():
            right = sum(int((model(rows).argmax(1) == labels).sum()) for rows, labels in evaluated)
        found = {name: part.state_dict() for name, part in parts.items()}
        context.report({"train:right": float(context.sum(float(right)))}, checkpoint={**found, "rates": rates})
