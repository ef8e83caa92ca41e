"""Asynchronous decentralised parallel SGD: each worker updates its own model, and averages it with a neighbour's."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.errors import DivergedError, TrialError
from trainers.gangs import merged, one_line
from trainers.parameter_server.clock import Clock, WallClock
from trainers.parameter_server.distribution import PATIENCE_SECONDS
from trainers.parameter_server.flat import Block
from trainers.parameter_server.ring.averaging import average_state
from trainers.parameter_server.ring.replica import Replica
from trainers.parameter_server.settings import Settings
from trainers.pytorch import (
    Communication,
    Distribution,
    HostClock,
    MicroBatch,
    Mixed,
    ModelPlan,
    Peers,
    SetUp,
    share,
    trained,
    weighed,
)

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Neighbour(Protocol):
    """A worker's way to a neighbour on the ring.

    Raises:
        GangError: the neighbour is gone.
        TrialError: it has ended its training.
    """

    def enter(self, patience: float, mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
        """Begins a training, in which `average` sends `mine` and fills `theirs`."""

    def average(self) -> None:
        """Averages: the neighbour takes its half, and `theirs` holds what it had before."""


class RingDistribution(Distribution):
    """Decentralised averaging (Lian et al., "Asynchronous Decentralized Parallel SGD", ICML 2018).

    A worker computes its gradient on a snapshot of its own model, averages the model with that of one of its two
    neighbours, drawn at random, and makes an update with its own optimizer. Neighbours average with it at any time; who
    waits for nobody is held up by nobody. The mean of all models moves as if an update averaged all workers' gradients.
    At the end of a pass all workers hold the mean of their models, and of what their optimizers keep.

    Args:
        peers: the gang.
        neighbours: to the worker before and to the one behind; one of them where there are two workers, none where
            there is one.
        publish: lets neighbours in to a replica; a text lets none in any more, and is told to who comes.
        settings: of the ring: delays and links.
        seed: the trial's; of delays and of whom a worker averages with.
        start: steps that this worker made in the trial's earlier segments.
        clock: what delays pass on.
        patience: seconds that a worker waits for another.
    """

    def __init__(
        self,
        *,
        peers: Peers,
        neighbours: Sequence[Neighbour],
        publish: Callable[[Replica | str], None],
        settings: Settings,
        seed: int,
        start: int = 0,
        clock: Clock | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._clock: Clock = clock or WallClock()
        self.communication = Communication(HostClock(self._clock.now))
        self.mixed = Mixed()
        self._peers = peers
        self._neighbours = list(neighbours)
        self._publish = publish
        self._settings = settings
        self._seed = seed
        self._steps = start
        self._patience = patience
        self._models: list[nn.Module] = []
        self._optimizer: Optimizer | None = None
        self._blocks: list[Block] = []
        self._replica = Replica([])
        self._sent: list[Tensor] = []
        self._theirs: list[Tensor] = []
        self._seen = 0
        self._updates, self._linked = 0, 0.0
        self._staleness: Counter[int] = Counter()
        self._account: dict[str, Any] = {"updates": 0, "pushes": 0, "staleness": {}}

    @property
    def workers_an_update(self) -> int:
        """See `Distribution.workers_an_update`: how many workers' gradients move the mean of the models."""
        return self._settings.workers_an_update

    @property
    def takes_own_steps(self) -> bool:
        """See `Distribution.takes_own_steps`."""
        return False

    @property
    def takes_wrappers(self) -> bool:
        """See `Distribution.takes_wrappers`."""
        return False

    @property
    def together(self) -> ProcessGroup | None:
        """See `Distribution.together`: each worker's batches make updates of its own."""
        return None

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        """See `Distribution.wrap`."""
        set_up(model)
        self._models.append(model)
        share(self._peers, [*model.parameters(), *model.buffers()])

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: Sequence[Tensor] | None) -> None:
        """See `Distribution.backward`; an update is of one worker's rows."""
        self.communication.begin(loss.device)
        weighed(loss, micro.rows / micro.update_rows if micro.update_rows else 0.0, inputs)

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        """See `Distribution.update`; one without rows averages, and changes nothing else."""
        self._begin(optimizer)
        parameters = trained(optimizer)
        with self.mixed.handed_over(parameters):
            finite = self.mixed.unscaled(parameter.grad for parameter in parameters)
            for block in self._blocks:
                block.collect()
            if max_norm is not None:
                nn.utils.clip_grad_norm_(parameters, max_norm)
            self._step(optimizer, counts=finite and micro.update_rows > 0)
        self.mixed.clear(parameters)
        for block in self._blocks:
            block.zero()
        self.communication.end()

    def _step(self, optimizer: Optimizer, *, counts: bool) -> None:
        """Averages with a neighbour, and updates what comes of it, where the worker has an update that counts."""
        draws = random.Random(f"{self._seed}/{self._peers.rank}/{self._steps}")
        mean = self._settings.delay_ms[self._peers.rank] / 1000
        self._clock.step(self._steps, draws.expovariate(1 / mean) if mean else 0.0)
        self._steps += 1
        if self._neighbours:
            self._average(draws.choice(self._neighbours))
        with self._replica.lock:
            self._load()
            self._staleness[self._replica.visits - self._seen] += 1
            if counts:
                optimizer.step()
                self._updates += 1
                self._keep()
            self._seen = self._replica.visits

    def synchronize(self, optimizer: Optimizer | None) -> None:
        """See `Distribution.synchronize`: the mean of all models, and rank 0's buffers.

        Raises:
            DivergedError: a parameter is not finite.
        """
        self.communication.pause()
        self._peers.meet("the end of a pass")  # Nobody averages from here on.
        self._clock.level()
        for line in (self._replica.up, self._replica.down):
            line.clear()
        if optimizer is not None:
            self._begin(optimizer)
            for values in self._replica.values:
                values.copy_(self._peers.sum(values) / self._peers.world_size)
            self._load()
            average_state(self._peers, optimizer)
            self._count()
            self._seen = self._replica.visits
        with torch.no_grad():
            share(self._peers, [buffer for model in self._models for buffer in model.buffers()])
        self._peers.meet("the mean of the models")
        for values in self._replica.values:
            if not torch.isfinite(values.sum()):
                raise DivergedError(f"diverged: parameters are not finite after {self._steps} steps of each worker")

    def close(self) -> dict[str, Any]:
        """See `Distribution.close`; what all workers did, as it was counted at the end of each pass."""
        error, who = sys.exception(), f"rank {self._peers.rank}"
        self._publish(f"{who} failed: {one_line(error)}" if error else f"{who} ended its training while others average")
        if self._optimizer is None or self._peers.rank:
            return {}
        details = {"mode": self._settings.mode, "servers": [], "clock": self._clock.name, **self._account}
        if self._settings.delayed:
            details["delay"] = f"simulated: mean ms a worker {[*self._settings.delay_ms]}"
        if (rate := self._settings.link_bytes_per_second) is not None:
            details["link"] = f"simulated: {rate:.15g} bytes a second each way"
        return {"parameter_server": details}

    def _begin(self, optimizer: Optimizer) -> None:
        if self._optimizer is optimizer:
            return
        if self._optimizer is not None:
            raise TrialError(
                "the training function steps with two optimizers, and workers on a ring train with one; give one "
                "optimizer several parameter groups"
            )
        self._optimizer = optimizer
        parameters = trained(optimizer)
        share(self._peers, parameters)  # Some may be of no prepared model.
        kinds: dict[Any, list[Tensor]] = {}
        for parameter in parameters:
            kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        self._blocks = [*map(Block, kinds.values())]
        values = [block.current().clone() for block in self._blocks]
        self._replica = Replica(values, self._settings.link_bytes_per_second)
        self._sent, self._theirs = ([torch.empty_like(of) for of in values] for _ in range(2))
        for neighbour in self._neighbours:
            neighbour.enter(self._patience, self._sent, self._theirs)
        self._publish(self._replica)
        self._peers.meet("the first step")  # Else a neighbour would not be there yet.

    def _average(self, neighbour: Neighbour) -> None:
        replica = self._replica
        with replica.lock:
            for mine, copy in zip(replica.values, self._sent, strict=True):
                copy.copy_(mine)
        with self.communication.waiting:
            neighbour.average()
        self.communication.bytes += 2 * replica.bytes
        replica.approach(self._sent, self._theirs)

    def _load(self) -> None:
        """The model is a snapshot of the replica."""
        for block, values in zip(self._blocks, self._replica.values, strict=True):
            block.values.copy_(values)
            block.spread()

    def _keep(self) -> None:
        """The replica is what the optimizer made of the model."""
        for block, values in zip(self._blocks, self._replica.values, strict=True):
            values.copy_(block.current())

    def _count(self) -> None:
        """Adds up what all workers did in this pass, on rank 0."""
        mine: dict[str, Any] = {
            "updates": self._updates,
            "pushes": self._staleness.total(),
            "staleness": {str(old): count for old, count in sorted(self._staleness.items())},
        }
        if self._settings.link_bytes_per_second is not None:
            seconds = self._replica.up.seconds + self._replica.down.seconds
            mine["link_seconds"], self._linked = seconds - self._linked, seconds
        self._updates, self._staleness = 0, Counter()
        for other in self._peers.gather(mine):
            self._account = merged(self._account, other)
