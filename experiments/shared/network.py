"""The small network of the published experiments, its training function, and the ways to distribute it.

It has 784-128-64-10 units and ReLU; `train` is the whole training function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from hpo import CategoricalParameter, ContinuousParameter
from hpo.ranges import ParameterRange
from trainers import ParameterServerTrainer, TorchTrainer, TrainContext, Trainer
from trainers.datasets import Dataset

TRAIN = "experiments.shared.network:train"
SEED, CLASSES = 1729, 10
GOOD = 0.97
BLOG = {"lr": 0.1, "momentum": 0.9, "per_worker_batch_size": 100}
EVALUATED = ("validation", "test")
METRICS = tuple(f"{channel}:{metric}" for channel in EVALUATED for metric in ("accuracy", "loss"))
LEARNING: dict[str, ParameterRange] = {
    "lr": ContinuousParameter(0.001, 0.5, "Logarithmic"),
    "momentum": ContinuousParameter(0.0, 0.95),
    "per_worker_batch_size": CategoricalParameter([50, 100, 200]),
}


def network(inputs: int) -> nn.Module:
    """Its layers."""
    return nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def train(context: TrainContext) -> None:
    """What each worker runs for one trial."""
    batches = context.prepare_data("train", labels=torch.int64)
    evaluated = {channel: context.shard(channel, labels=torch.int64) for channel in EVALUATED}
    model = context.prepare_model(network(evaluated["test"].features.shape[1]))
    lr, momentum = context.hyperparameters["lr"], context.hyperparameters["momentum"]
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        for features, labels in batches:
            context.step(F.cross_entropy(model(features), labels), optimizer)
        metrics: dict[str, float] = {}
        for channel, shard in evaluated.items():
            with torch.no_grad():
                outputs = model(shard.features)
                right = (outputs.argmax(1) == shard.labels).sum().double()
                loss = F.cross_entropy(outputs, shard.labels, reduction="sum").double()
            # Sums over all workers, so that the figures are those of the whole channel.
            right, loss, rows = context.sum(torch.stack([right, loss, right.new_tensor(len(outputs))])).tolist()
            metrics |= {f"{channel}:accuracy": right / rows, f"{channel}:loss": loss / rows}
        context.report(metrics, checkpoint={"model": model.state_dict(), "optimizer": optimizer.state_dict()})


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way to train the network.

    Args:
        name: in the table.
        workers: how many.
        changed: hyperparameters over the blog's.
        asynchronous: through an asynchronous parameter server; otherwise over AllReduce.
    """

    name: str
    workers: int
    changed: dict[str, Any] = field(default_factory=dict)
    asynchronous: bool = False

    def trainer(self, epochs: int, *, in_hand: bool = False) -> Trainer:
        """Its trainer; `in_hand` trains in this process, where a parameter server's workers are simulated."""
        given = {**BLOG, **self.changed, "epochs": epochs}
        scaling = ScalingConfig(num_workers=0 if in_hand else self.workers, resources_per_worker={"CPU": 1})
        if self.asynchronous:
            given |= {"mode": "async", "num_workers": self.workers}
            return ParameterServerTrainer(TRAIN, scaling=scaling, hyperparameters=given, metrics=METRICS)
        return TorchTrainer(TRAIN, scaling=scaling, hyperparameters=given, metrics=METRICS)


def channels(dataset: Dataset) -> dict[str, Any]:
    """A dataset's parts, as trainers and tuners take them."""
    return {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}


def mean_staleness(pushes: Mapping[str, int]) -> float:
    """Updates between a worker's pull and its push, in the mean; 0 without a parameter server.

    Args:
        pushes: by their staleness, as a trainer records them.
    """
    return sum(int(old) * count for old, count in pushes.items()) / max(1, sum(pushes.values()))
