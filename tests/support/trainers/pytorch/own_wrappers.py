"""A network, and a training function that does not wrap it."""

from __future__ import annotations

import torch
from torch import nn


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)).double()


def keeps_one(context) -> None:
    """Train a plain model, without the wrapper of an earlier trial."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.zeros(1, 6).double()).sum().backward()
    optimizer.step()
