"""A training function that reports given values, and jobs by the best value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from tests.support.networks import HERE, network, run, state
from trainers import TorchTrainer
from trainers.gangs.messages import Assignment


def train(context) -> None:
    """Reports `values`, an epoch each; what is in the checkpoint tells of the epoch."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    batches = context.prepare_data("train", labels=torch.int64)
    for epoch in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        kept = {"model": model.state_dict(), "nested": [torch.tensor(epoch)]}
        context.report(
            {"train:value": words["values"][epoch]},
            checkpoint=None if epoch in words.get("without", ()) else kept,
            final=context.rank == 0 and epoch == words.get("ends"),
        )


VALUES = [3.0, 7.0, 1.0, 5.0, 7.0, 2.0]


def by_best(one: Assignment, mode: str = "max") -> Assignment:
    return replace(one, objective="train:value", mode=mode, by_best=True)


def words(workers: int = 0, **others: Any) -> dict[str, Any]:
    return {"per_worker_batch_size": 8, "values": VALUES, **({"num_workers": workers} if workers else {}), **others}


def in_one_process(*assignments) -> list:
    return run(TorchTrainer(train, scaling=HERE), *assignments)


def handed_out(segment) -> dict[str, Any]:
    state(segment)  # Raises where it is an error.
    return TorchTrainer(train, scaling=HERE).load_model(segment.checkpoint)
