"""Data parallelism over AllReduce: gradients of all workers added up, always in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.errors import DivergedError, TrialError
from trainers.pytorch.distribution import Distribution, MicroBatch, Peers, SetUp, trained, weighed
from trainers.pytorch.gradients.peers import share
from trainers.pytorch.measures import Communication
from trainers.pytorch.state import Mixed

if TYPE_CHECKING:
    from trainers.pytorch.plan import ModelPlan

FIRST_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20
"""Gradients go out in parts of at least this size, as `DistributedDataParallel`'s do, while the rest is still computed.

The first part is small: it goes out early, and a small network has more than one.
"""

LOOK_EVERY = 16
"""Updates between two looks at whether gradients are finite; on a GPU each look waits for it."""


class AllReduce(Distribution):
    """Adds up the workers' gradients into one update; see `Distribution`.

    What PyTorch's `DistributedDataParallel` does (Li et al., "PyTorch Distributed: Experiences on Accelerating Data
    Parallel Training", VLDB 2020), with three differences. Buckets are an optimizer's, not a model's: an update adds up
    what its optimizer trains, wherever that comes from, and nothing else. They are laid out again only where an
    optimizer's parameters change, since another layout adds up in another order: so a trial that was paused ends with
    the same bits. And gradients are added, not averaged: the rows' weights are in the loss, so that workers with fewer
    rows count for less.

    Args:
        peers: the gang's workers.
    """

    def __init__(self, peers: Peers) -> None:
        self.communication = Communication()
        self.mixed = Mixed()
        self._peers = peers
        self._models: list[nn.Module] = []
        self._shared: set[nn.Parameter] = set()
        self._sums: WeakKeyDictionary[Optimizer, _Sum] = WeakKeyDictionary()
        self._updates: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()
        self._hooked: dict[nn.Parameter, Any] = {}
        """The handle of each parameter's hook."""
        self._now: _Sum | None = None
        """What a backward pass of ours is for."""
        self._completes = False
        self._strays: set[nn.Parameter] = set()
        """Those that a backward pass of somebody else's reached."""

    @property
    def workers_an_update(self) -> int:
        """All of them."""
        return self._peers.world_size

    @property
    def together(self) -> dist.ProcessGroup | None:
        """See `Distribution.together`."""
        return dist.group.WORLD if self._peers.world_size > 1 else None

    @property
    def takes_own_steps(self) -> bool:
        """See `Distribution.takes_own_steps`: of one worker, which has no other's parameters to agree with."""
        return self._peers.world_size == 1

    @property
    def takes_wrappers(self) -> bool:
        """See `Distribution.takes_wrappers`."""
        return True

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        """See `Distribution.wrap`."""
        set_up(model)
        self._models.append(model)
        if self._peers.world_size > 1:
            share(self._peers, [*model.parameters(), *model.buffers()])
            self._shared.update(model.parameters())

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """See `Distribution.backward`; a row weighs its share of the update's."""
        self.communication.begin(loss.device)
        if self._peers.world_size > 1:
            self._now, self._completes = self._sum_of(optimizer), micro.last
        weighed(loss, micro.rows / micro.total_rows if micro.total_rows else 0.0, inputs)
        self._now = None

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        """See `Distribution.update`."""
        if self._peers.world_size == 1:
            self._step(optimizer, max_norm)
            optimizer.zero_grad()
            self.communication.end()
            self.mixed.clear(p for group in optimizer.param_groups for p in group["params"])
            return
        sums = self._sums[optimizer]
        if sums.others:
            # Each worker may have made them with its own random numbers. Before the backward pass was too early: what
            # it needs of the forward pass may not change.
            share(self._peers, sums.others)
            self._shared.update(sums.others)
            sums.others = []
        sums.finish()
        self._step(optimizer, max_norm, [bucket.gradients for bucket in sums.buckets])
        sums.clear()
        self.communication.end()

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """See `Distribution.synchronize`: parameters are alike already, buffers (running means) become rank 0's."""
        self.communication.pause()
        self._peers.meet("synchronize")
        for model in self._models:
            if self._peers.world_size > 1:
                share(self._peers, list(model.buffers()))
            for name, parameter in model.named_parameters():
                if not torch.isfinite(parameter.detach().sum()):
                    raise DivergedError(f"parameter {name!r} is not finite any more")

    def close(self) -> dict[str, Any]:
        """Nothing happened that the metrics do not show."""
        # Python's garbage collector does not see the hooks that a parameter holds: model and gradients would stay.
        for handle in self._hooked.values():
            handle.remove()
        self._hooked.clear()
        return {}

    def _step(self, optimizer: Optimizer, max_norm: float | None, summed: Sequence[Tensor] = ()) -> None:
        """One update; `summed` are the gradients in a few tensors, where they lie so."""
        parameters = trained(optimizer)
        with self.mixed.handed_over(parameters):
            whole = [p.grad for p in parameters] if self.mixed.precision.copies or not summed else summed
            updates = self._updates.get(optimizer, 0)
            self._updates[optimizer] = updates + 1
            # What was added up is the same on every worker, so all of them find the same.
            if not self.mixed.unscaled(whole):
                return
            if updates % LOOK_EVERY == 0 and not self.mixed.scales:
                for gradient in whole:
                    if gradient is not None and not torch.isfinite(gradient.sum()):
                        raise DivergedError(f"gradients are not finite after {updates} updates of this segment")
            if max_norm is not None:
                nn.utils.clip_grad_norm_(parameters, max_norm)
            optimizer.step()

    def _sum_of(self, optimizer: Optimizer) -> _Sum:
        """Where an optimizer's gradients are added up; every rank comes here with the same optimizer."""
        own = trained(optimizer)
        parameters, known = self.mixed.leaves(own), self._sums.get(optimizer)
        if known is None or not known.is_of(parameters):
            for parameter in parameters:
                if parameter not in self._hooked:
                    hook: Any = parameter.register_post_accumulate_grad_hook
                    self._hooked[parameter] = hook(self._arrived)
                    if parameter.grad is not None:
                        self._strays.add(parameter)
            known = self._sums[optimizer] = _Sum(parameters, self.communication)
            known.others = [parameter for parameter in own if parameter not in self._shared]
        if self._strays:
            self._check_strays(parameters)
        return known

    def _check_strays(self, parameters: Iterable[nn.Parameter]) -> None:
        """Refuses gradients that no `backward` weighed, unless they were made zero since then."""
        for parameter in self._strays.intersection(parameters):
            self._strays.discard(parameter)
            if parameter.grad is not None and parameter.grad.count_nonzero():
                raise TrialError(
                    f"rank {self._peers.rank}: parameters have gradients of a backward() outside context.step(), which "
                    "would count more than once on several workers; add the losses up and call context.step(loss, "
                    "optimizer), or call optimizer.zero_grad() before it"
                )

    def _arrived(self, parameter: nn.Parameter) -> None:
        """A parameter's gradient is there."""
        if self._now is None:
            self._strays.add(parameter)
        elif self._completes:
            self._now.arrived(parameter)


class _Sum:
    """The gradients of an optimizer's parameters in buckets, each added up over all workers as soon as it is full.

    Args:
        parameters: in the optimizer's order; gradients that they have already are kept.
        communication: what is handed over and waited for.
    """

    def __init__(self, parameters: list[nn.Parameter], communication: Communication) -> None:
        self._communication = communication
        self.buckets = _bucketed(parameters)
        self.others: list[nn.Parameter] = []
        """Those of no prepared model, until all workers have rank 0's."""
        self._parameters = parameters
        self._bucket_of = {id(parameter): bucket for bucket in self.buckets for parameter in bucket.parameters}
        self._launched: list[Any] = []
        """What each bucket that went out is waited for by, in their order."""

    def is_of(self, parameters: list[nn.Parameter]) -> bool:
        """Whether it is laid out for these."""
        mine = self._parameters
        return len(mine) == len(parameters) and all(one is other for one, other in zip(mine, parameters, strict=True))

    def arrived(self, parameter: nn.Parameter) -> None:
        """A gradient is complete; full buckets go out in their order, the same on every worker."""
        bucket = self._bucket_of.get(id(parameter))
        if bucket is None or len(self.buckets) == 1:
            return  # It is another optimizer's; or there is nothing to overlap with.
        bucket.missing.discard(id(parameter))
        ready = len(self._launched)
        while ready < len(self.buckets) and not self.buckets[ready].missing:
            ready += 1
        self._launch(ready)

    def finish(self) -> None:
        """Sends what has not gone out yet, and waits for all."""
        self._launch(len(self.buckets))
        with self._communication.waiting:
            for work in self._launched:
                work.wait()
        self._launched.clear()

    def clear(self) -> None:
        """Makes it ready for the next update."""
        for bucket in self.buckets:
            bucket.clear()

    def _launch(self, until: int) -> None:
        for bucket in self.buckets[len(self._launched) : until]:
            for parameter in bucket.parameters:
                bucket.take(parameter)
            self._launched.append(dist.all_reduce(bucket.gradients, async_op=True))
            self._communication.bytes += bucket.gradients.nbytes


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
            self.take(parameter)
            start += parameter.numel()
        self.missing = set(self.places)

    def take(self, parameter: Tensor) -> None:
        """Puts a gradient that autograd made elsewhere, after a user's `zero_grad` say, into its place."""
        view = self.places[id(parameter)]
        if parameter.grad is view:
            return
        if parameter.grad is None:
            view.zero_()
        elif parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad)
        parameter.grad = view

    def clear(self) -> None:
        """Makes it ready for the next update."""
        self.gradients.zero_()
        self.missing = set(self.places)


def _bucketed(parameters: Iterable[nn.Parameter]) -> list[_Bucket]:
    """The last parameters first, since their gradients come first; a bucket that has its size is closed."""
    groups: list[list[nn.Parameter]] = []
    size, least = 0, FIRST_BYTES
    for parameter in reversed(list(parameters)):
        alike = groups and (groups[-1][0].dtype, groups[-1][0].device) == (parameter.dtype, parameter.device)
        if not alike or size >= least:
            least = BUCKET_BYTES if groups else FIRST_BYTES
            groups.append([])
            size = 0
        groups[-1].append(parameter)
        size += parameter.nbytes
    return [_Bucket(group) for group in groups]
