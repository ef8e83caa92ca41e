"""Training whose learning rate falls at an epoch, and a job that tunes when."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from ray.train import ScalingConfig
from rich.console import Console
from torch import nn
from torch.nn import functional

from hpo import CategoricalParameter, HyperparameterTuner
from tests.support.exact_torch_job import kill_once
from trainers import TorchTrainer, TrainContext
from trainers.datasets import load

_FOUND = load("digits")
CHANNELS = {name: frame[:600] for name, frame in (("train", _FOUND.train), ("validation", _FOUND.validation))}
EPOCHS: list[tuple[int, int]] = []
"""The epochs that were trained in this process, with the epoch at which the learning rate falls."""


def train(context: TrainContext) -> None:
    """Like the function of `exact_torch_job`, but the learning rate falls to a tenth at epoch `decay_at`."""
    words = context.hyperparameters
    model = context.prepare_model(nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=words["lr"], momentum=0.9)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    batches = context.prepare_data("train", labels=torch.int64)
    validation = context.shard("validation", labels=torch.int64)
    for epoch in context.epochs():
        for group in optimizer.param_groups:
            group["lr"] = words["lr"] * (0.1 if epoch >= words["decay_at"] else 1)
        EPOCHS.append((words["decay_at"], epoch))
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        if epoch == 1 and context.rank == context.world_size - 1:
            kill_once(words.get("kill", ""))
        with torch.no_grad():
            lost = functional.cross_entropy(model(validation.features.double()), validation.labels, reduction="sum")
        lost, rows = context.sum(torch.stack([lost, torch.tensor(float(len(validation)))])).tolist()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"validation:loss": lost / rows}, checkpoint=state)


def tuner(
    folder: Path, callbacks: Any = (), *, workers: int = 0, kill: str = "", **options: Any
) -> HyperparameterTuner:
    """A grid of three trials of six epochs: the learning rate falls at epoch 2, 3 or 4."""
    static = {"lr": 0.1, "per_worker_batch_size": 64, "epochs": 6, "decay_at": 6, **({"kill": kill} if kill else {})}
    return HyperparameterTuner(
        TorchTrainer(
            train,
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            hyperparameters=static,
        ),
        "validation:loss",
        {"decay_at": CategoricalParameter([2, 3, 4])},
        storage_path=str(folder),
        callbacks=callbacks,
        store=f"sqlite:///{folder}/record.db",
        console=Console(file=io.StringIO()),
        **{
            "strategy": "Grid",
            "objective_type": "Minimize",
            "random_seed": 1729,
            "takes_effect": {"decay_at": "decay_at"},
            "num_to_keep": None,
            **options,
        },
    )
