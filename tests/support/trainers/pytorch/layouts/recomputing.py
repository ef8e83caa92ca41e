"""A deep network, and a training function that recomputes activations."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from trainers import ModelPlan


class Block(nn.Module):
    def __init__(self, width: int, norm: type[nn.Module] = nn.BatchNorm1d) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.3), nn.Linear(4 * width, width)
        )
        self.norm = norm(width)

    def forward(self, rows: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return rows + scale * self.layers(self.norm(rows))


class Deep(nn.Module):
    def __init__(self, depth: int = 4, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(6, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.last = nn.Linear(width, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = self.first(rows)
        for block in self.blocks:
            rows = block(rows, scale=0.5)
        return self.last(rows)


def train(context) -> None:
    words = context.hyperparameters
    model = context.prepare_model(Deep(), ModelPlan(recompute=words["recompute"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})
