"""Batch sizes in the field's words, and updates of a pass over sharded rows; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainers.checking import check_whole
from trainers.errors import ConfigurationError
from trainers.pytorch.distribution import MicroBatch

GLOBAL: str = "global_batch_size"
PER_WORKER: str = "per_worker_batch_size"
ACCUMULATION: str = "gradient_accumulation_steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """How many rows an update is made of: global = workers x per worker x accumulation steps.

    Args:
        workers: whose gradients are combined.
        per_worker_batch_size: rows of one backward pass on one worker.
        gradient_accumulation_steps: backward passes to an update.
    """

    workers: int
    per_worker_batch_size: int
    gradient_accumulation_steps: int = 1

    @property
    def global_batch_size(self) -> int:
        """Rows of an update, over all workers."""
        return self.workers * self.per_worker_batch_size * self.gradient_accumulation_steps

    @classmethod
    def of(cls, hyperparameters: Mapping[str, Any], workers: int) -> BatchSize | None:
        """The batch size of the hyperparameters, under the names above; None where they give none.

        Raises:
            ConfigurationError: a value is no whole number of 1 or more, both sizes are given, or one does not divide.
        """
        steps = _whole(hyperparameters, ACCUMULATION) or 1
        whole, each = _whole(hyperparameters, GLOBAL), _whole(hyperparameters, PER_WORKER)
        if whole is not None and each is not None:
            raise ConfigurationError(
                f"{GLOBAL} is {whole} and {PER_WORKER} is {each}; give one of the two, and the other follows from "
                f"{workers} workers and {steps} accumulation steps"
            )
        if each is not None:
            return cls(workers=workers, per_worker_batch_size=each, gradient_accumulation_steps=steps)
        if whole is None:
            return None
        each, left = divmod(whole, workers * steps)
        if left:
            near = max(1, each) * workers * steps
            raise ConfigurationError(
                f"{GLOBAL} {whole} does not divide by {workers} workers x {steps} accumulation steps; "
                f"give a multiple of {workers * steps}, such as {near}"
            )
        return cls(workers=workers, per_worker_batch_size=each, gradient_accumulation_steps=steps)


def micro_batches(
    rank: int, shard_rows: Sequence[int], size: int, steps: int = 1, *, drop_last: bool = False
) -> list[MicroBatch]:
    """One worker's part of a pass, a backward pass each; on every worker there are as many.

    Args:
        rank: the worker.
        shard_rows: how many rows each worker holds.
        size: rows of one backward pass on one worker; the last may have fewer, or none where others still have some.
        steps: backward passes to an update; the last update of a pass may have fewer.
        drop_last: leave out what does not fill an update's every part.
    """
    count = -(-max(shard_rows) // size)
    if drop_last:
        count = min(shard_rows) // size // steps * steps
    sizes = [[max(0, min(rows - at * size, size)) for at in range(count)] for rows in shard_rows]
    return updates_of(rank, sizes, steps)


def updates_of(rank: int, sizes: Sequence[Sequence[int]], steps: int = 1) -> list[MicroBatch]:
    """One worker's part of a pass over batches of any sizes, a backward pass each; on every worker there are as many.

    Args:
        rank: the worker.
        sizes: by rank, how many rows each of its batches has.
        steps: backward passes to an update; the last update of a pass may have fewer.
    """
    count = max(map(len, sizes))
    updates = []
    for start in range(0, count, steps):
        end = min(start + steps, count)
        rows_of = [sum(rows[start:end]) for rows in sizes]
        updates += [
            MicroBatch(
                rows=sizes[rank][at] if at < len(sizes[rank]) else 0,
                update_rows=rows_of[rank],
                total_rows=sum(rows_of),
                last=at == end - 1,
            )
            for at in range(start, end)
        ]
    return updates


def unplanned(steps: int, workers: int) -> Iterator[MicroBatch]:
    """Micro-batches of rows that nobody counted: each is taken to be as large as any other."""
    while True:
        for step in range(steps):
            yield MicroBatch(rows=1, update_rows=steps, total_rows=steps * workers, last=step == steps - 1)


def _whole(hyperparameters: Mapping[str, Any], name: str) -> int | None:
    value = hyperparameters.get(name)
    check_whole(f"hyperparameter {name!r}", value, 1)
    return value
