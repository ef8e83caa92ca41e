"""A training function whose epochs a test traces and holds up, by files that all machines see."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from trainers import TrainContext, patient_storage


def train(context: TrainContext) -> None:
    """A small network, over AllReduce.

    Files beside the one that says how slow it is: `worker` says which process trains, and `impatience` how many seconds
    it waits for storage. While `scratch` is there, each epoch writes a temporary file.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    model = context.prepare_model(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=context.hyperparameters["eta"], momentum=0.9)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    batches = context.prepare_data("train", labels=torch.float32)
    held = context.shard("validation", labels=torch.float32)
    for epoch in context.epochs():
        if context.rank == 0:
            worker(context.hyperparameters["slow"]).write_text(f"{socket.gethostname()} {os.getpid()}")
            with open(context.hyperparameters["trace"], "a") as trace:
                trace.write(f"{context.seed} {epoch} {context.world_size}\n")
        if epoch > context.hyperparameters["slow_after"] and not _is_the_probe(context):
            _last(context.hyperparameters["slow"])
        if scratch(context.hyperparameters["slow"]).exists():
            with tempfile.TemporaryFile() as file:
                file.write(bytes(4096))
        with suppress(FileNotFoundError):
            patient_storage.GIVE_UP_SECONDS = float(impatience(context.hyperparameters["slow"]).read_text())
        for features, labels in batches:
            context.step(functional.binary_cross_entropy_with_logits(model(features)[:, 0], labels), optimizer)
        with torch.no_grad():
            right = ((model(held.features)[:, 0] > 0) == (held.labels > 0.5)).sum()
        right, rows = context.sum(torch.stack([right, torch.tensor(len(held))])).tolist()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"validation:auc": right / rows}, checkpoint=state)


def worker(slow: str | Path) -> Path:
    """The file that names the machine, and its number of the process, of rank 0 of the gang that trains."""
    return Path(slow).with_suffix(".worker")


def impatience(slow: str | Path) -> Path:
    """The file that shortens a worker's patience, beside the one that makes its epochs slow."""
    return Path(slow).with_suffix(".impatience")


def scratch(slow: str | Path) -> Path:
    """The file that has each epoch write a temporary file."""
    return Path(slow).with_suffix(".scratch")


def _is_the_probe(context: TrainContext) -> bool:
    """Whether it is the job's probe that trains, which comes first, and goes on elsewhere only as a trial."""
    with open(context.hyperparameters["trace"]) as trace:
        return int(trace.readline().split()[0]) == context.seed


def _last(file: str) -> None:
    """Takes as many seconds as a file says, but no longer than it is there."""
    began = time.monotonic()
    with suppress(FileNotFoundError):
        while time.monotonic() - began < float(Path(file).read_text()):
            time.sleep(0.05)
