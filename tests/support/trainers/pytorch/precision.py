"""A network and a training function in low precision."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from tests.support.networks import close

LOW = ["bf16", "fp16", "bf16-master", "fp16-master"]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))


def train(context) -> None:
    """Adam with a schedule; `burst` makes the gradients of one batch in six overflow, on one worker, at first."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = context.prepare_data("train", labels=torch.int64)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        dtypes = set()
        for at, (features, labels) in enumerate(batches):
            output = model(features)
            loss = functional.cross_entropy(output, labels)
            if words.get("burst") and at % 6 == 3 and context.rank == context.world_size - 1:
                loss = loss * words["burst"]
            context.step(loss, optimizer, max_norm=words.get("max_norm"))
            dtypes |= {str(part.dtype) for part in (output, *model.parameters())}
        if "leave" in words:
            torch.save(model.state_dict(), f"{words['leave']}/{context.rank}.pt")
        found = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "dtypes": sorted(dtypes)}
        context.report({}, checkpoint=found)


def flat(found: dict) -> dict:
    """Every tensor of a checkpoint's state, by name."""
    moments = {
        f"{number}/{name}": value for number, one in found["optimizer"]["state"].items() for name, value in one.items()
    }
    return {**found["model"], **moments}


def near(one: dict, other: dict, tolerance: float = 0.05) -> None:
    """Weights alone: the first bias stands before a normalisation, its gradient is rounding, and Adam divides by it."""
    names = ["0.weight", "1.weight", "4.weight", "4.bias"]
    close({name: one[name] for name in names}, {name: other[name] for name in names}, tolerance)
