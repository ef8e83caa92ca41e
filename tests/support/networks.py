"""A small network, its rows, and the exact training that a gang's is compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

from tests.support.process_gang import serve_alone
from trainers import ParameterServerTrainer
from trainers.channels import Channel
from trainers.gangs.messages import Assignment, Segment
from trainers.pytorch.state.checkpoint import TorchCheckpoint


def data(rows: int = 96, columns: int = 6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(rows)
    features = generator.normal(size=(rows, columns)).astype(np.float32)
    return features, (features[:, 0] + features[:, 1] ** 2 > 1).astype(np.float32)


def network(columns: int = 6) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 8), nn.Tanh(), nn.Linear(8, 2)).double()


def train_exactly(context) -> None:
    """SGD with momentum in float64, rows in their order; each rank leaves its weights in a file."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    for _ in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        if "leave" in words:
            torch.save(model.state_dict(), f"{words['leave']}/{context.rank}.pt")
        context.report({"train:x": 0.0}, checkpoint={"model": model.state_dict()})


def small_buckets() -> None:
    from trainers.pytorch.gradients import allreduce

    allreduce.FIRST_BYTES = allreduce.BUCKET_BYTES = 100


def assignment(folder: Path, start: int = 0, stop: int = 2, name: str = "trial", **hyperparameters) -> Assignment:
    folder.mkdir(parents=True, exist_ok=True)
    return Assignment(
        trial_id=name,
        hyperparameters=hyperparameters,
        seed=11,
        start=start,
        stop=stop,
        checkpoint=str(folder / name / f"{start}.pt") if start else None,
        save_to=str(folder / name / f"{stop}.pt"),
    )


def state(segment) -> dict:
    if isinstance(segment, Exception):
        raise segment
    return TorchCheckpoint.read(segment.checkpoint).state


def close(one: dict, other: dict, tolerance: float = 1e-12) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance)


HERE = ScalingConfig(num_workers=0)


def train_adam(context) -> None:
    """Adam with two groups, dropout, a scheduler and shuffled rows."""
    model = context.prepare_model(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2)))
    groups = [{"params": model[0].parameters()}, {"params": model[3].parameters(), "weight_decay": 0.1}]
    optimizer = torch.optim.Adam(groups, lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    if context.checkpoint is not None:
        for name, part in {"model": model, "optimizer": optimizer, "scheduler": scheduler}.items():
            part.load_state_dict(context.checkpoint[name])
    batches = context.prepare_data("train", labels=torch.int64)
    for _ in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        scheduler.step()
        context.report(
            {"train:x": float(model[0].weight.detach().sum())},
            checkpoint={
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
        )


def run(trainer, *assignments: Assignment, rows: int = 96) -> list[Segment]:
    found = serve_alone(trainer.program({"train": Channel.of(data(rows), name="train").place(0)}), *assignments)
    for segment in found:
        if isinstance(segment, Exception):
            raise segment
    return found


def servers(function, *assignments: Assignment, rows: int = 96) -> list[Segment]:
    return run(ParameterServerTrainer(function, scaling=HERE), *assignments, rows=rows)
