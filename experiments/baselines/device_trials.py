"""A training function for a worker's device, which can end in each of the ways that a gang has to survive."""

from __future__ import annotations

import gc
import os

import torch
from torch.nn import functional as F  # noqa: N812  # as everybody calls it
from torch.optim import SGD

from experiments.baselines.training_loops import layers
from trainers import TrainContext

TRAIN = "experiments.baselines.device_trials:train"


def train(context: TrainContext) -> None:
    """A fully connected network by SGD, rows in their order; `widths` and `lr` are hyperparameters.

    It reports the mean loss of each epoch over the rows of all workers, and what the worker found: bytes of tensors
    that were there before it began, threads, GPUs that it sees, and how many workers its environment tells of. The
    hyperparameter `ends` is "" or one of `ENDS`.
    """
    given, device = context.hyperparameters, context.device
    found = {
        "held_bytes": float(held_bytes(device)),
        "threads": float(torch.get_num_threads()),
        "gpus_seen": float(torch.cuda.device_count()),
        "told_workers": float(os.environ.get("WORLD_SIZE", "0")),
    }
    batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
    model = context.prepare_model(layers(given["widths"]))
    optimizer = SGD(model.parameters(), lr=given["lr"], momentum=0.9)
    for _ in context.epochs():
        lost, rows = torch.zeros((), dtype=torch.float64, device=device), 0
        for features, labels in batches:
            loss = F.cross_entropy(model(features), labels)
            context.step(loss, optimizer)
            lost += loss.detach() * len(labels)
            rows += len(labels)
            end(context, given.get("ends", ""))
        lost, total = context.sum(lost), context.sum(float(rows))
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"train:loss": (lost / total).item(), **found}, checkpoint=state)


ENDS = ("error", "peer", "memory", "assertion")
"""Ends of a trial: an error on all workers, one on the last alone, want of memory, an assertion on the GPU."""


def end(context: TrainContext, how: str) -> None:
    """Ends a trial, after its first step, in one of these ways."""
    if how == "error" or (how == "peer" and context.rank == context.world_size - 1):
        raise ValueError(f"it ends as asked: {how}")
    if how == "memory":
        torch.empty(1 << 50, dtype=torch.uint8, device=context.device)
    if how == "assertion":
        beyond = torch.tensor([7], device=context.device)
        torch.zeros(1, device=context.device)[beyond].cpu()


def held_bytes(device: torch.device) -> int:
    """Bytes of a GPU that PyTorch's tensors hold; on the CPU, of all tensors that Python knows of."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    gc.collect()
    tensors = [each for each in gc.get_objects() if type(each) in (torch.Tensor, torch.nn.Parameter)]
    return sum({each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}.values())
