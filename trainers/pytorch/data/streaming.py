"""Streaming of rows from a Ray Dataset: batches of its blocks, fetched one after another, one ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainers.pytorch.data.batches import BatchSize, micro_batches
from trainers.pytorch.data.loading import Batches, Passes, Shard, in_order
from trainers.pytorch.data.transfer import fetched, gathered, sent
from trainers.pytorch.state import derive


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One worker's rows of a channel, a piece at a time.

    Args:
        fetch: gives each piece, in the host's memory; called in the background.
        rows: of each.
    """

    fetch: Sequence[Callable[[], Shard]]
    rows: Sequence[int]

    def __len__(self) -> int:
        return sum(self.rows)

    def whole(self) -> Shard:
        """All of them at once, in the host's memory."""
        pieces = [fetch() for fetch in self.fetch]
        return Shard(
            features=torch.cat([piece.features for piece in pieces]),
            labels=torch.cat([piece.labels for piece in pieces]),
        )


def stream_batches(
    stream: Stream,
    shard_rows: Sequence[int],
    rank: int,
    size: BatchSize,
    *,
    shuffle: bool,
    labels: torch.dtype,
    seed: int,
    device: torch.device,
    passes: Passes,
) -> Batches:
    """Batches of (features, labels) over a stream, on the worker's device.

    While a piece is trained on, the next one is fetched. Shuffled, the pieces come in another order in each pass, and
    so do the rows within each: rows of one piece stay near each other, which whole shards do not have.
    """
    plan = micro_batches(rank, shard_rows, size.per_worker_batch_size, size.gradient_accumulation_steps)

    def load(number: int, start: int) -> Iterator[tuple[Tensor, Tensor]]:
        drawn = derive(seed, rank, number)
        pieces = in_order(len(stream.rows), drawn).tolist() if shuffle else range(len(stream.rows))
        skip = sum(micro.rows for micro in plan[:start])
        shard: Shard | None = None
        at, first = start, 0
        while first < len(pieces) and skip >= stream.rows[pieces[first]]:
            skip -= stream.rows[pieces[first]]
            first += 1
        fetches = fetched(stream.fetch[piece] for piece in pieces[first:])
        for piece, rows_of_it in zip(pieces[first:], fetches, strict=True):
            order = in_order(stream.rows[piece], derive(drawn, piece)) if shuffle else None
            shard = _after(shard, rows_of_it, order, skip, labels)
            skip = 0
            while at < len(plan) and 0 < plan[at].rows <= len(shard.labels):
                rows = plan[at].rows
                yield _own(shard.features[:rows], shard.labels[:rows], device, shuffle)
                shard = Shard(features=shard.features[rows:], labels=shard.labels[rows:])
                at += 1
        if not torch.is_grad_enabled() or at == len(plan):
            return  # As in `shard_batches`: an evaluation counts rows.
        again = stream.fetch[0]()
        for _ in range(at, len(plan)):
            yield _own(again.features[:1], again.labels[:1].to(labels), device, False)

    return Batches(lambda number: plan, lambda number, start: sent(load(number, start), device), passes)


def _own(features: Tensor, labels: Tensor, device: torch.device, copied: bool) -> tuple[Tensor, Tensor]:
    """A batch that the function may change, which is a copy of what lies in the object store."""
    if copied and device.type == "cpu":
        return features, labels
    return gathered(features, slice(None), device), gathered(labels, slice(None), device)


def _after(shard: Shard | None, piece: Shard, order: Tensor | None, skip: int, labels: torch.dtype) -> Shard:
    """The rest of the pieces before, and behind it this one."""
    if order is not None:
        order = order.to(piece.labels.device)
        piece = Shard(features=piece.features.index_select(0, order), labels=piece.labels.index_select(0, order))
    features, numbers = piece.features[skip:], piece.labels[skip:].to(labels)
    if shard is None or not len(shard.labels):
        return Shard(features=features, labels=numbers)
    return Shard(features=torch.cat([shard.features, features]), labels=torch.cat([shard.labels, numbers]))
