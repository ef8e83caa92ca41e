"""Data parallelism over AllReduce: every worker's gradients are added up, in the same order every time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.errors import DivergedError
from trainers.pytorch.distribution import MicroBatch, Peers
from trainers.pytorch.peers import share

BUCKET_BYTES = 25 * 1024 * 1024
"""Gradients go out in parts of this size, as `DistributedDataParallel`'s do, while the rest is still computed."""

LOOK_EVERY = 16
"""Updates between two looks at whether gradients are finite; on a GPU each look waits for it."""


class AllReduce:
    """Adds up the workers' gradients into one update; see `Distribution`.

    What PyTorch's `DistributedDataParallel` does (Li et al., "PyTorch Distributed: Experiences on Accelerating Data
    Parallel Training", VLDB 2020), with two differences. Buckets are laid out once and never rebuilt, since another
    layout adds up in another order: so a trial that was paused ends with the same bits. And gradients are added, not
    averaged: the rows' weights are in the loss, so that workers with fewer rows count for less.

    Args:
        peers: the gang's workers.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._buckets: list[_Bucket] = []
        self._bucket_of: dict[int, _Bucket] = {}
        self._models: list[nn.Module] = []
        self._launched: list[Any] = []
        """What each bucket that went out is waited for by, in their order."""
        self._updates = 0
        self._completes = True

    @property
    def workers_an_update(self) -> int:
        """All of them."""
        return self._peers.world_size

    def wrap(self, model: nn.Module) -> None:
        """See `Distribution.wrap`. Gradients become views of the buckets."""
        self._models.append(model)
        if self._peers.world_size > 1:
            share(self._peers, [*model.parameters(), *model.buffers()])
            buckets = _bucketed(p for p in model.parameters() if p.requires_grad)
            self._buckets += buckets
            # One alone goes out when the backward pass is over, which needs no call for each parameter.
            for bucket in buckets if len(buckets) > 1 else []:
                for parameter in bucket.parameters:
                    self._bucket_of[id(parameter)] = bucket
                    parameter.register_post_accumulate_grad_hook(self._arrived)  # type: ignore[no-untyped-call]

    def weight(self, micro: MicroBatch) -> float:
        """Its share of the update's rows."""
        self._completes = micro.last
        return micro.rows / micro.total_rows if micro.total_rows else 0.0

    def update(self, optimizer: Optimizer, micro: MicroBatch) -> None:
        """See `Distribution.update`."""
        if self._peers.world_size == 1:
            self._step(optimizer, [p.grad for group in optimizer.param_groups for p in group["params"]])
            optimizer.zero_grad()
            return
        self._launch(len(self._buckets))
        for work in self._launched:
            work.wait()
        self._launched.clear()
        self._step(optimizer, [bucket.gradients for bucket in self._buckets])
        for bucket in self._buckets:
            bucket.clear()

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """See `Distribution.synchronize`: parameters are alike already, buffers (running means) become rank 0's."""
        self._peers.meet("synchronize")
        for model in self._models:
            if self._peers.world_size > 1:
                share(self._peers, list(model.buffers()))
            for name, parameter in model.named_parameters():
                if not torch.isfinite(parameter.detach().sum()):
                    raise DivergedError(f"parameter {name!r} is not finite any more")

    def close(self) -> dict[str, Any]:
        """Nothing happened that the metrics do not show."""
        return {}

    def _step(self, optimizer: Optimizer, gradients: Iterable[Tensor | None]) -> None:
        # What was added up is the same on every worker, so all of them find the same.
        if self._updates % LOOK_EVERY == 0:
            for gradient in gradients:
                if gradient is not None and not torch.isfinite(gradient.sum()):
                    raise DivergedError(f"gradients are not finite after {self._updates} updates of this segment")
        self._updates += 1
        optimizer.step()

    def _arrived(self, parameter: Tensor) -> None:
        """A parameter's gradient is there; full buckets go out in their order, the same on every worker."""
        if not self._completes:
            return
        self._bucket_of[id(parameter)].missing.discard(id(parameter))
        ready = len(self._launched)
        while ready < len(self._buckets) and not self._buckets[ready].missing:
            ready += 1
        self._launch(ready)

    def _launch(self, until: int) -> None:
        for bucket in self._buckets[len(self._launched) : until]:
            for parameter in bucket.parameters:
                bucket.take(parameter)
            self._launched.append(dist.all_reduce(bucket.gradients, async_op=True))


class _Bucket:
    """Gradients of some parameters in one flat tensor, of which each `.grad` is a view."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        first = parameters[0]
        self.gradients = torch.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        self.places: dict[int, Tensor] = {}
        start = 0
        for parameter in parameters:
            self.places[id(parameter)] = self.gradients[start : start + parameter.numel()].view_as(parameter)
            parameter.grad = self.places[id(parameter)]
            start += parameter.numel()
        self.missing = set(self.places)

    def take(self, parameter: Tensor) -> None:
        """Puts a gradient that a user's `zero_grad` let autograd make elsewhere into its place."""
        view = self.places[id(parameter)]
        if parameter.grad is view:
            return
        if parameter.grad is not None and parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad)
        parameter.grad = view

    def clear(self) -> None:
        """Makes it ready for the next update."""
        self.gradients.zero_()
        self.missing = set(self.places)


def _bucketed(parameters: Iterable[nn.Parameter]) -> list[_Bucket]:
    """The last parameters first, since their gradients come first."""
    groups: list[list[nn.Parameter]] = []
    size = 0
    for parameter in reversed(list(parameters)):
        nbytes = parameter.numel() * parameter.element_size()
        alike = groups and (groups[-1][0].dtype, groups[-1][0].device) == (parameter.dtype, parameter.device)
        if not alike or size + nbytes > BUCKET_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(parameter)
        size += nbytes
    return [_Bucket(group) for group in groups]
