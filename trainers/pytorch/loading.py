"""Batches of a pass over data: rows on the device, or a DataLoader's; counted, so that each row weighs alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from trainers.errors import TrialError
from trainers.pytorch.batches import BatchSize, micro_batches
from trainers.pytorch.distribution import MicroBatch
from trainers.pytorch.random_state import derive


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One worker's rows of a channel.

    Args:
        features: float32 (rows, columns), on the worker's device.
        labels: (rows,), on the same device; of the type that was asked for.
    """

    features: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


class Passes(Protocol):
    """What follows the passes over prepared data."""

    def begin(self, micro: MicroBatch, done: float) -> None:
        """A batch is handed out; `done` is the part of the pass before it, 0 to 1."""

    def end(self) -> None:
        """A pass is over."""


class Batches:
    """What `prepare_data` gives: iterate over it for a pass; the next iteration is the next pass.

    Args:
        plan: this worker's batches of a pass.
        load: gives the batches of pass number `n`, from the `k`-th on.
        passes: is told of each.
    """

    def __init__(self, plan: Sequence[MicroBatch], load: Callable[[int, int], Iterator[Any]], passes: Passes) -> None:
        self._plan = plan
        self._load = load
        self._passes = passes
        self.position = (0, 0)
        """Passes done, and batches of the next one."""

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[Any]:
        number, start = self.position
        for at, batch in enumerate(self._load(number, start), start):
            self.position = (number, at + 1)
            self._passes.begin(self._plan[at], at / len(self._plan))
            yield batch
        self.position = (number + 1, 0)
        self._passes.end()


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
            if order is None:
                batch = shard.features[mine], shard.labels[mine]
            else:
                batch = shard.features.index_select(0, order[mine]), shard.labels.index_select(0, order[mine])
            yield tuple(part.to(device, non_blocking=True) for part in batch)  # type: ignore[misc]  # two parts

    return Batches(plan, load, passes)


def loader_batches(
    loader: DataLoader[Any],
    rank: int,
    workers: int,
    steps: int,
    *,
    seed: int,
    device: torch.device,
    passes: Passes,
) -> Batches:
    """A DataLoader's batches, its dataset's rows dealt out to the workers; shuffled if the loader was.

    Raises:
        TrialError: its dataset has no length, or its batches no size, so that rows cannot be dealt out.
    """
    if isinstance(loader.dataset, IterableDataset) or loader.batch_size is None:
        raise TrialError(
            "prepare_data() takes a DataLoader over a dataset with a length and with a batch_size; give a map-style "
            "dataset, or name a channel"
        )
    rows = len(loader.dataset)  # type: ignore[arg-type]  # a map-style dataset has a length
    if rows < workers:
        raise TrialError(f"the DataLoader's dataset has {rows} rows for {workers} workers; use fewer workers")
    shuffle = not isinstance(loader.sampler, SequentialSampler)
    shard_rows = [len(range(other, rows, workers)) for other in range(workers)]
    plan = micro_batches(rank, shard_rows, loader.batch_size, steps, drop_last=loader.drop_last)

    def load(number: int, start: int) -> Iterator[Any]:
        order = in_order(rows, derive(seed, number)) if shuffle else torch.arange(rows)
        mine = order[rank::workers].tolist()
        per = loader.batch_size or 1
        again = mine[:1] if torch.is_grad_enabled() else []  # As in `shard_batches`.
        chosen = [mine[at * per : (at + 1) * per] or again for at in range(start, len(plan))]
        chosen = [batch for batch in chosen if batch]
        for batch in _like(loader, chosen, derive(seed, rank, number, "workers")):
            yield moved(batch, device)

    return Batches(plan, load, passes)


def moved(batch: Any, device: torch.device) -> Any:
    """A batch on a device: tensors, and lists, tuples and dicts of them."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: moved(part, device) for name, part in batch.items()}
    if isinstance(batch, list | tuple):
        parts = [moved(part, device) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def in_order(rows: int, seed: int) -> Tensor:
    """The numbers of some rows, shuffled."""
    return torch.randperm(rows, generator=torch.Generator().manual_seed(seed))


def _like(loader: DataLoader[Any], chosen: list[list[int]], seed: int) -> DataLoader[Any]:
    """The same loader over these rows."""
    return DataLoader(
        loader.dataset,
        batch_sampler=chosen,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=torch.Generator().manual_seed(seed),
        prefetch_factor=loader.prefetch_factor,
    )
