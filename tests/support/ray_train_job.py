"""A training function as Ray Train's documentation writes it, and the trainer that a user has of it."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import ray.train
import ray.train.torch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def rows(count: int = 96) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(count, 6, generator=generator)
    return TensorDataset(features, (features[:, 0] + features[:, 1] > 0).long())


def train(config: dict[str, Any]) -> None:
    """Each word of `config` beside "lr" and "num_epochs" makes it do something else than the documentation.

    "every": epochs between checkpoints, 0 for none; "kill": a file, which the last rank takes away in its second epoch,
    and kills itself.
    """
    model = ray.train.torch.prepare_model(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)))
    loader = ray.train.torch.prepare_data_loader(DataLoader(rows(), batch_size=16, shuffle=True))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    context = ray.train.get_context()
    start = 0
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            state = torch.load(os.path.join(folder, "model.pt"), weights_only=True)
        inner(model).load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, config["num_epochs"]):
        if context.get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch == 1 and context.get_world_rank() == context.get_world_size() - 1:
            kill_once(config.get("kill", ""))
        with torch.no_grad():
            features, labels = rows().tensors
            accuracy = (inner(model)(features).argmax(1) == labels).float().mean().item()
        metrics = {"loss": loss.item(), "accuracy": accuracy, "epoch": epoch, "note": "a text"}
        with tempfile.TemporaryDirectory() as folder:
            kept = None
            every = config.get("every", 1)
            if context.get_world_rank() == 0 and every and (epoch + 1) % every == 0:
                state = {"model": inner(model).state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
                torch.save(state, os.path.join(folder, "model.pt"))
                kept = ray.train.Checkpoint.from_directory(folder)
            ray.train.report(metrics, checkpoint=kept)


def inner(model: nn.Module) -> nn.Module:
    return model.module if hasattr(model, "module") else model


def kill_once(file: str) -> None:
    if file and Path(file).exists():
        Path(file).unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def trainer(workers: int = 2, function: Any = train, **config: Any) -> Any:
    return ray.train.torch.TorchTrainer(
        function,
        train_loop_config={"lr": 0.01, "num_epochs": 4, **config},
        scaling_config=ray.train.ScalingConfig(num_workers=workers),
    )


OURS = trainer()
"""One that a name leads to."""
