"""A training function that ends its trial."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.support.networks import network
from trainers.gangs.messages import Segment


def train(context) -> None:
    """Ends the trial after the epoch `ends`; other ranks than the first learn of that from it."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    for epoch in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report(
            {"train:epoch": epoch},
            checkpoint={"model": model.state_dict(), "epoch": epoch},
            final=context.rank == 0 and epoch == words["ends"],
        )


def steps(segment: Segment) -> list[tuple[int, float]]:
    return [(report.step, report.metrics["train:epoch"]) for report in segment.reports]


WORDS = {"per_worker_batch_size": 8}
