"""What trains either network: AdamW without decay of vectors, a warm-up and half a cosine, and scores of whole rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from trainers import TrainContext
from trainers.pytorch import Shard


def adamw(model: nn.Module, lr: float, weight_decay: float) -> AdamW:
    """AdamW (Loshchilov and Hutter, 2019) whose decay spares biases and norms, which are vectors.

    Args:
        model: prepared.
        lr: learning rate.
        weight_decay: of matrices and kernels.
    """
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups: list[dict[str, Any]] = [{"params": matrices, "weight_decay": weight_decay}]
    return AdamW([*groups, {"params": vectors, "weight_decay": 0.0}], lr=lr, betas=(0.9, 0.95))


def scheduled(optimizer: AdamW, warm_up: float, steps: int) -> LambdaLR:
    """The schedule of an optimizer's learning rate, to be stepped after each update; see `factor`."""
    return LambdaLR(optimizer, partial(factor, warm_up=warm_up, steps=steps))


def factor(step: int, *, warm_up: float, steps: int) -> float:
    """Factor of the learning rate of update `step`, counted from 0.

    It rises in equal parts to 1, and falls along half a cosine to a tenth (Loshchilov and Hutter, "SGDR", 2017).

    Args:
        step: the update.
        warm_up: part of all updates in which it rises, 0 to 1.
        steps: updates in all; later ones have a tenth.
    """
    rising = warm_up * steps
    if step < rising:
        return (step + 1) / (rising + 1)
    done = min(1.0, (step - rising) / max(1.0, steps - rising))
    return 0.1 + 0.45 * (1.0 + math.cos(math.pi * done))


def endless(batches: Iterable[Any]) -> Iterator[Any]:
    """Passes over prepared data, one behind the other, whatever a unit of resource takes of them."""
    while True:
        yield from batches


def loss_of(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean cross-entropy, of logits (rows, ..., classes) and classes (rows, ...)."""
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())


@torch.no_grad()
def scores(context: TrainContext, model: nn.Module, shard: Shard, most: int, *, text: bool) -> dict[str, float]:
    """Mean loss, and the part of predictions that are right, over the first rows of all workers' shards.

    Each worker takes as many rows: workers that hold a model in shards compute together.

    Args:
        context: of the trial.
        model: prepared; it is in training again afterwards.
        shard: this worker's rows.
        most: rows of all workers that are looked at.
        text: see `parts`.

    Raises:
        ValueError: there are fewer rows than workers.
    """
    each = min(most, int(context.sum(float(len(shard))))) // context.world_size
    if not each:
        raise ValueError(f"{most} rows to validate on are too few for {context.world_size} workers")
    batch = context.batch.per_worker_batch_size if context.batch else each
    totals = torch.zeros(3, dtype=torch.float64, device=context.device)
    model.eval()
    for start in range(0, each, batch):
        rows = slice(start, min(each, start + batch))
        inputs, targets = parts(shard.features[rows], shard.labels[rows], text=text)
        outputs = model(inputs)
        right, count = (outputs.argmax(-1) == targets).sum().item(), targets.numel()
        totals += totals.new_tensor([loss_of(outputs, targets).item() * count, right, count])
    model.train()
    loss, right, count = context.sum(totals).tolist()
    return {"loss": loss / count, "accuracy": right / count}


def parts(features: Tensor, labels: Tensor, *, text: bool) -> tuple[Tensor, Tensor]:
    """What a network takes, and what it is to find, of a batch of a channel.

    Args:
        features: float32 (rows, columns): pixels, or bytes of a text.
        labels: int64 (rows,): classes, or the byte behind each row.
        text: the network finds the byte behind each byte, and not one class a row.
    """
    if not text:
        return features, labels
    tokens = features.long()
    return tokens, torch.cat([tokens[:, 1:], labels[:, None]], 1)
