"""Training functions over AllReduce, the program of one on whichever process asks, and what each rank says."""

from __future__ import annotations

import random

import numpy as np
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

from tests.support.networks import data
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer
from trainers.channels import Channel
from trainers.gangs.messages import Assignment


def train_with_everything(context) -> None:
    """Dropout, Adam, a scheduler, shuffled rows, draws from every generator: all that a pause has to keep."""
    model = context.prepare_model(
        nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    batches = context.prepare_data("train", labels=torch.int64)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
        scheduler.load_state_dict(context.checkpoint["scheduler"])
    for _ in context.epochs():
        model.train()
        for features, labels in batches:
            noise = torch.randn(()) + random.random() + np.random.standard_normal()  # noqa: NPY002
            context.step(functional.cross_entropy(model(features + 0.01 * noise), labels), optimizer)
        scheduler.step()
        model.eval()
        context.report(
            {"train:noise": float(noise)},
            checkpoint={
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            },
        )


def program(function, rows: int = 96, *, timeout: float = 60.0, **options):
    """Makes the program of a trainer, on whichever process asks."""

    def make():
        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=timeout, **options)
        return trainer.program({"train": Channel.of(data(rows), name="train").place(0)})

    return make


def only(answers: list) -> list:
    """The one answer of each rank."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer[0] for answer in answers]


def only_errors(answers: list) -> list:
    found = [answer[0] for answer in answers]
    assert all(isinstance(error, Exception) for error in found), found
    return found


def alone(function, rows: int, *assignments: Assignment) -> list:
    return serve_alone(program(function, rows)(), *assignments)
