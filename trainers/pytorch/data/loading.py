"""Batches of a pass over data, weighted so that each row counts alike."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch import Tensor

from trainers.errors import TrialError
from trainers.pytorch.data.batches import BatchSize, micro_batches
from trainers.pytorch.data.transfer import gathered, sent
from trainers.pytorch.distribution import MicroBatch
from trainers.pytorch.state import derive

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One worker's rows of a channel.

    Args:
        features: float32 (rows, columns), on the worker's device or, where they do not fit, in the host's memory.
        labels: (rows,), on the same device; of the type that was asked for.
    """

    features: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


class Passes(Protocol):
    """Observer of passes over prepared data."""

    def begin(self, micro: MicroBatch, number: int, done: float) -> None:
        """A batch of pass `number` is handed out; `done` is the part of the pass before it, 0 to 1."""

    def absent(self, batches: int) -> None:
        """This worker has no rows for so many batches that others have in a pass without gradients."""

    def end(self) -> None:
        """A pass is over."""


@dataclass(slots=True)
class Place:
    """Where prepared data stands.

    Args:
        start: where it stood when the function began.
        position: passes done, and batches of the next one.
    """

    start: tuple[int, int] = (0, 0)
    position: tuple[int, int] = (0, 0)

    def put(self, position: tuple[int, int]) -> None:
        """Goes on from a checkpoint's."""
        self.start = self.position = position

    def rewind(self) -> None:
        """Forgets what was taken since the function began: a batch whose shape it looked at, say."""
        self.position = self.start


class Batches:
    """Result of `prepare_data`: iterate over it for a pass; the next iteration is the next pass.

    A pass that is left, with `break`, is over. One whose iterator is kept goes on with it, and, after a pause, with the
    next iterator.

    Args:
        plan: gives this worker's batches of pass number `n`.
        load: gives the batches of pass number `n`, from the `k`-th on.
        passes: is told of each.
        end: ends what is kept from pass to pass.
    """

    def __init__(
        self,
        plan: Callable[[int], Sequence[MicroBatch]],
        load: Callable[[int, int], Iterator[Any]],
        passes: Passes,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._load = load
        self._passes = passes
        self._end = end
        self._open = WeakSet[Generator[Any]]()
        """Iterators of passes that may not be over."""
        self._latest: object = None
        self._going: Iterator[Any] | None = None
        self._completes = False
        """Whether an update is complete with the batch that came last."""
        self.place = Place()

    def __len__(self) -> int:
        return len(self._plan(self._next()[0]))

    def __iter__(self) -> Iterator[Any]:
        iterator = self._iterate()
        self._open.add(iterator)
        return iterator

    def close(self) -> None:
        """End all passes, and the processes of a DataLoader that load them.

        Left to Python's garbage collection, a DataLoader that is part of a ring of objects waits 5 s for each of its
        processes: the collection closes the queue that would tell the process to end.
        """
        self._going = None
        for iterator in [*self._open]:
            try:
                iterator.close()
            except Exception as error:  # The user's dataset raises it, or a thread of the user's still reads the pass.
                logger.warning("a pass over data could not be ended: %s: %s", type(error).__name__, error)
        self._end()

    def _iterate(self) -> Generator[Any]:
        number, start = self._next()
        plan = self._plan(number)
        mine = self._latest = object()
        at = start - 1
        try:
            for at, batch in enumerate(self._load(number, start), start):
                self.place.position = (number, at + 1)
                self._completes = plan[at].last
                self._passes.begin(plan[at], number, at / len(plan))
                yield batch
            if (left := len(plan) - at - 1) > 0:
                self._passes.absent(left)
        finally:
            # An iterator that somebody kept and lets go of later says nothing of the pass that is on now.
            if self._latest is mine:
                self.place.position = (number + 1, 0)
        self._passes.end()

    def steps(self, count: int) -> Iterator[Any]:
        """The batches of the next `count` updates, pass after pass; another call goes on behind them."""
        empty = 0
        while count:
            if self._going is None:
                self._going = iter(self)
            for batch in self._going:
                empty = 0
                count -= self._completes
                yield batch
                if not count:
                    return
            self._going, empty = None, empty + 1
            if empty > 2:  # One may have ended just before a pause.
                raise TrialError("context.steps() found no batch in a whole pass; give data that has some")

    def _next(self) -> tuple[int, int]:
        """The pass that comes next, and where it begins: after the last batch of one, the one behind it."""
        number, start = self.place.position
        return (number, start) if start < len(self._plan(number)) else (number + 1, 0)


def shard_batches(
    shard: Shard,
    shard_rows: Sequence[int],
    rank: int,
    size: BatchSize,
    *,
    shuffle: bool,
    seed: int,
    device: torch.device,
    passes: Passes,
) -> Batches:
    """Batches of (features, labels) out of a shard, in an order that depends on seed, rank and pass alone."""
    plan = micro_batches(rank, shard_rows, size.per_worker_batch_size, size.gradient_accumulation_steps)
    rows, per = len(shard.labels), size.per_worker_batch_size

    def load(number: int, start: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = in_order(rows, derive(seed, rank, number)).to(shard.labels.device) if shuffle else None
        for at in range(start, len(plan)):
            if not plan[at].rows and not torch.is_grad_enabled():
                return  # An evaluation counts rows: none may come twice.
            # A worker that has no rows left while others do repeats its first, which weighs nothing.
            mine = slice(at * per, min(rows, (at + 1) * per)) if plan[at].rows else slice(0, 1)
            chosen = mine if order is None else order[mine]
            # A copy: the function may change it, and other trials are to see the rows as they were.
            yield gathered(shard.features, chosen, device), gathered(shard.labels, chosen, device)

    if shard.features.device.type == device.type:
        return Batches(lambda number: plan, load, passes)
    return Batches(lambda number: plan, lambda number, start: sent(load(number, start), device), passes)


def in_order(rows: int, seed: int) -> Tensor:
    """The numbers of some rows, shuffled."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
