"""Mean of what the workers' optimizers keep."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from trainers.pytorch import Peers, trained

_Key = tuple[int, str]
"""The place of a parameter in the optimizer, and the name of what is kept of it."""


def average_state(peers: Peers, optimizer: Optimizer) -> None:
    """Gives all workers' optimizers the mean of their states; every rank calls it.

    Tensors of floating point are averaged over the workers that have them, which are all but those that had no rows
    yet; of anything else, such as counters of steps, all take that of the first worker that has it.

    Args:
        peers: the gang.
        optimizer: of the same parameters on every worker.
    """
    if peers.world_size == 1:
        return
    parameters = trained(optimizer)
    kept = {
        (place, name): value
        for place, parameter in enumerate(parameters)
        for name, value in optimizer.state.get(parameter, {}).items()
    }
    tensors = {key: value for key, value in kept.items() if _is_averaged(value)}
    others = {key: value for key, value in kept.items() if key not in tensors}
    shapes = {key: (tuple(value.shape), value.dtype) for key, value in tensors.items()}
    told: list[tuple[dict[_Key, Any], dict[_Key, Any]]] = peers.gather((shapes, others))
    owners: dict[_Key, int] = {}
    layout: dict[_Key, Any] = {}
    for of_rank, _ in told:
        for key, shape in of_rank.items():
            owners[key] = owners.get(key, 0) + 1
            layout.setdefault(key, shape)
    taken: dict[_Key, Any] = {}
    for _, of_rank in reversed(told):
        taken |= copy.deepcopy(of_rank)  # Simulated workers are given each other's own.
    for key, value in {**taken, **_means(peers, tensors, layout, owners, parameters)}.items():
        optimizer.state[parameters[key[0]]][key[1]] = value


def _means(
    peers: Peers, tensors: dict[_Key, Tensor], layout: dict[_Key, Any], owners: dict[_Key, int], parameters: list[Any]
) -> dict[_Key, Tensor]:
    """One sum for each type of number, in an order that is the same on every worker."""
    means: dict[_Key, Tensor] = {}
    for dtype in dict.fromkeys(dtype for _, dtype in layout.values()):
        keys = sorted(key for key, (_, its) in layout.items() if its == dtype)
        parts = [
            tensors[key].reshape(-1)
            if key in tensors
            else torch.zeros(layout[key][0], dtype=dtype, device=parameters[key[0]].device).reshape(-1)
            for key in keys
        ]
        device = parts[0].device
        total = peers.sum(torch.cat([part.to(device) for part in parts]))
        for key, part in zip(keys, torch.split(total, [part.numel() for part in parts]), strict=True):
            mean = (part / owners[key]).view(layout[key][0])
            means[key] = mean.to(parameters[key[0]].device)
    return means


def _is_averaged(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 0
