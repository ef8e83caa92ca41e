"""A network on the digits that learns more or less well: its ranges, and its training function on every worker."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.ranges import ParameterRange
from trainers import TrainContext

CLASSES = 10
EVALUATED = ("validation", "test")
METRICS = tuple(f"{channel}:accuracy" for channel in EVALUATED)
RANGES: dict[str, ParameterRange] = {
    "lr": ContinuousParameter(0.001, 0.5, "Logarithmic"),
    "momentum": ContinuousParameter(0, 0.95),
    "weight_decay": ContinuousParameter(1e-6, 1e-2, "Logarithmic"),
    "per_worker_batch_size": CategoricalParameter([32, 64, 128]),
    "width": IntegerParameter(8, 128, "Logarithmic"),
    "dropout": ContinuousParameter(0, 0.5),
}


def train(context: TrainContext) -> None:
    """What each worker runs for one trial: a hidden layer, dropout and SGD."""
    tuned = context.hyperparameters
    batches = context.prepare_data("train", labels=torch.int64)
    evaluated = {channel: context.shard(channel, labels=torch.int64) for channel in EVALUATED}
    width, inputs = int(tuned["width"]), evaluated["test"].features.shape[1]
    layers = nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(tuned["dropout"]), nn.Linear(width, CLASSES)
    model = context.prepare_model(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=tuned["lr"], momentum=tuned["momentum"], weight_decay=tuned["weight_decay"]
    )
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        model.train()
        for features, labels in batches:
            context.step(F.cross_entropy(model(features), labels), optimizer)
        model.eval()
        with torch.no_grad():
            right = [(model(shard.features).argmax(1) == shard.labels).sum() for shard in evaluated.values()]
        rows = [torch.tensor(len(shard.labels)) for shard in evaluated.values()]
        # Sums over all workers, so that the figures are those of the whole channel.
        sums = context.sum(torch.stack([*right, *rows]).double()).tolist()
        accuracy = [hits / among for hits, among in zip(sums[: len(right)], sums[len(right) :], strict=True)]
        metrics = dict(zip(METRICS, accuracy, strict=True))
        context.report(metrics, checkpoint={"model": model.state_dict(), "optimizer": optimizer.state_dict()})
