"""A model that runs as compiled code only, and its training function."""

from __future__ import annotations

import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

from tests.support.networks import data, state
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer
from trainers.channels import Channel

HERE = ScalingConfig(num_workers=0)


class Compiled(nn.Module):
    """Runs as compiled code only."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            raise RuntimeError("this model was not compiled")
        return self.layers(rows)


def train(context) -> None:
    words = context.hyperparameters
    made = Compiled(words.get("width", 4)) if words.get("compiled", True) else Compiled(4).layers
    model = context.prepare_model(made)
    optimizer = torch.optim.SGD(model.parameters(), lr=words.get("lr", 0.1))
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        weights = [part.detach().clone() for part in model.parameters()]
        context.report({}, checkpoint={str(number): part for number, part in enumerate(weights)})


def serve(*assignments, rows: int = 19, function=train, **options) -> list[dict]:
    trainer = TorchTrainer(function, scaling=HERE, **options)
    made = trainer.program({"train": Channel.of(data(rows), name="train").place(0)})
    return [state(segment) for segment in serve_alone(made, *assignments)]
