"""Workers for tests: a small network to train, and threads that train it over real sockets."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trainers.parameter_server.distribution import ServerDistribution
from trainers.parameter_server.server.listener import Listener
from trainers.parameter_server.server.server import Server
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.wire import SocketLink
from trainers.pytorch import ModelPlan
from trainers.pytorch.distribution import Distribution, MicroBatch, Peers, SetUp

DEADLINE = 120.0
_SEEDING = threading.Lock()  # Workers are threads here, and PyTorch's random state is the process's.


class NoPeers:
    """One worker alone."""

    rank, world_size = 0, 1

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def broadcast(self, values: Any) -> None:
        pass


class ThreadPeers:
    """Peers that are threads of this process."""

    def __init__(self, rank: int, world_size: int, barrier: threading.Barrier, slots: list[Any]) -> None:
        self.rank, self.world_size, self._barrier, self._slots = rank, world_size, barrier, slots

    def gather(self, value: Any) -> list[Any]:
        self._slots[self.rank] = value
        self._barrier.wait(DEADLINE)
        found = list(self._slots)
        self._barrier.wait(DEADLINE)
        return found

    def sum(self, values: Tensor) -> Tensor:
        return torch.stack(self.gather(values.clone())).sum(0)

    def broadcast(self, values: Tensor) -> None:
        values.copy_(self.gather(values.clone())[0])

    def meet(self, what: str, said: bool = False) -> bool:
        return bool(self.gather(said)[0])


def served(servers: int, stack: ExitStack) -> list[Listener]:
    """Servers on real sockets, until the stack closes."""
    found = []
    for number in range(servers):
        found.append(Listener(Server(f"parameter server {number}"), "127.0.0.1", secrets.token_bytes(32)))
        stack.callback(found[-1].close)
    return found


def over_sockets(
    worker: Callable[[Peers, Distribution], Any], settings: Settings, *, patience: float = DEADLINE, seed: int = 0
) -> list[Any]:
    """Run workers in threads, with servers on real sockets; return their results or errors."""
    count = settings.workers
    barrier, slots = threading.Barrier(count), [None] * count
    results: list[Any] = [None] * count
    with ExitStack() as stack:
        addresses = [listener.address for listener in served(settings.num_servers, stack)]

        def run(rank: int) -> None:
            links = [SocketLink(address, rank) for address in addresses]
            try:
                peers = ThreadPeers(rank, count, barrier, slots)
                distribution = ServerDistribution(
                    peers=peers, links=links, settings=settings, seed=seed, patience=patience
                )
                results[rank] = worker(peers, distribution)
            except BaseException as error:
                results[rank] = error
            finally:
                for link in links:
                    link.close()

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * DEADLINE)
            assert not thread.is_alive()
    return results


FEATURES, TARGETS = torch.randn(2, 240, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def network() -> nn.Module:
    """A small network whose parameters differ with the worker, as long as nobody shares them out."""
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6)).double()


def momentum(model: nn.Module) -> Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def as_it_is(module: nn.Module) -> None:
    """Sets nothing up."""


def wrapped(distribution: Distribution, model: nn.Module) -> nn.Module:
    distribution.wrap(model, ModelPlan(), as_it_is)
    return model


class Training:
    """A training function: passes over the data in batches, dealt out to the workers.

    Args:
        optimizer: makes the optimizer of a model.
        passes: how many, from the first.
        batch: rows of all workers in an update.
        rows: how many of the data's rows there are to train on.
        model: makes the model, once PyTorch's random state is seeded.
        each: is called after each step.
        max_norm: as `Distribution.update` takes it.
    """

    def __init__(
        self,
        optimizer: Callable[[nn.Module], Optimizer] = momentum,
        *,
        passes: int = 2,
        batch: int = 48,
        rows: int = 240,
        model: Callable[[], nn.Module] = network,
        each: Callable[[Peers, Optimizer], None] | None = None,
        max_norm: float | None = None,
    ) -> None:
        self.optimizer, self.passes, self.batch, self.rows = optimizer, passes, batch, rows
        self.model, self.each, self.max_norm = model, each, max_norm

    def __call__(self, peers: Peers, distribution: Distribution) -> Trained:
        with _SEEDING, torch.random.fork_rng():
            torch.manual_seed(peers.rank)
            model = self.model()
        distribution.wrap(model, ModelPlan(), as_it_is)
        optimizer = self.optimizer(model)
        passes = []
        for _ in range(self.passes):
            for start in range(0, self.rows, self.batch):
                self._step(peers, distribution, model, optimizer, start)
                if self.each is not None:
                    self.each(peers, optimizer)
            distribution.synchronize(optimizer)
            passes.append(weights(model))
        return Trained(passes, optimizer.state_dict(), distribution.close())

    def _step(
        self, peers: Peers, distribution: Distribution, model: nn.Module, optimizer: Optimizer, start: int
    ) -> None:
        total = min(self.batch, self.rows - start)
        mine = slice(start + peers.rank, start + total, peers.world_size)
        rows = len(FEATURES[mine])
        micro = MicroBatch(rows=rows, update_rows=rows, total_rows=total, last=True)
        if rows:
            loss = nn.functional.mse_loss(model(FEATURES[mine]), TARGETS[mine])
            distribution.backward(loss, optimizer, micro, None)
        distribution.update(optimizer, micro, self.max_norm)


@dataclass(frozen=True)
class Trained:
    """The results of one worker: parameters after each pass, the optimizer's state, and details."""

    passes: list[Tensor]
    state: dict[str, Any]
    details: dict[str, Any]

    @property
    def weights(self) -> Tensor:
        return self.passes[-1]


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


class Alone:
    """Plain training, in the same shape: one process, the optimizer's own step."""

    workers_an_update = 1
    rank, world_size = 0, 1

    def wrap(self, model: nn.Module, plan: ModelPlan, set_up: SetUp) -> None:
        pass

    takes_own_steps = True

    def backward(self, loss: Tensor, optimizer: Optimizer, micro: MicroBatch, inputs: None) -> None:
        loss.backward()

    def update(self, optimizer: Optimizer, micro: MicroBatch, max_norm: float | None = None) -> None:
        if max_norm is not None:
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    def synchronize(self, optimizer: Optimizer | None) -> None:
        pass

    def close(self) -> dict[str, Any]:
        return {}


def alone(training: Training) -> Trained:
    """Train in plain PyTorch; return the result."""
    nobody: Any = Alone()
    return training(nobody, nobody)
