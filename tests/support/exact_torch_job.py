"""Training in float64, which a gang does as one process does, and a worker that may be killed once on the way."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from trainers import TrainContext


def train(context: TrainContext) -> None:
    """SGD with momentum over rows in their order; reports the loss of all validation rows.

    With the hyperparameter `kill`, the path of a file, the last rank takes the file away and kills its own process, in
    its second epoch: once, since it is gone then.
    """
    words = context.hyperparameters
    model = context.prepare_model(nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=words["lr"], momentum=0.9)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    validation = context.shard("validation", labels=torch.int64)
    for epoch in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        if epoch == 1 and context.rank == context.world_size - 1:
            kill_once(words.get("kill", ""))
        with torch.no_grad():
            scores = model(validation.features.double())
            lost = functional.cross_entropy(scores, validation.labels, reduction="sum")
        lost, rows = context.sum(torch.stack([lost, torch.tensor(float(len(validation)))])).tolist()
        context.report(
            {"validation:loss": lost / rows},
            checkpoint={"model": model.state_dict(), "optimizer": optimizer.state_dict()},
        )


def kill_once(file: str) -> None:
    """Kills this process if the file is there, which it takes away first."""
    if file and Path(file).exists():
        Path(file).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
