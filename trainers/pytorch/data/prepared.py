"""Data prepared for a training function: a worker's rows, and passes over them in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from trainers.errors import TrialError
from trainers.pytorch.data.batches import GLOBAL, PER_WORKER, BatchSize
from trainers.pytorch.data.examples import ExampleSet, check_loading
from trainers.pytorch.data.iterables import IteratedBatches
from trainers.pytorch.data.loaders import loader_batches
from trainers.pytorch.data.loading import Batches, Passes, Shard, shard_batches
from trainers.pytorch.data.ray_streams import RayStream, StreamedBatches
from trainers.pytorch.data.streaming import Stream, stream_batches
from trainers.pytorch.data.worker import Held
from trainers.pytorch.distribution import Peers
from trainers.pytorch.state import derive


class PreparedData:
    """Datasets that a worker's training function has prepared, and its position in each.

    Args:
        shards: the worker's rows by channel.
        shard_rows: by channel, how many rows each worker holds, by rank.
        peers: the gang's workers.
        size: of batches, where the hyperparameters give one.
        seed: of the trial.
        device: that the worker trains on.
        positions: where a checkpoint left what is prepared, in the order in which it is asked for.
        passes: is told of each pass.
        beat: is called where workers are about to wait for each other.
    """

    def __init__(
        self,
        shards: Mapping[str, Held],
        shard_rows: Mapping[str, Sequence[int]],
        peers: Peers,
        size: BatchSize | None,
        *,
        seed: int,
        device: torch.device,
        positions: Sequence[tuple[int, int]],
        passes: Passes,
        beat: Callable[[], None],
    ) -> None:
        self._shards = shards
        self._shard_rows = shard_rows
        self._peers = peers
        self._size = size
        self._seed = seed
        self._device = device
        self._resumed_at = positions
        self._passes = passes
        self._beat = beat
        self._batches: list[Batches] = []
        self._shown: str | None = None
        """The channel whose rows the function was given last; a DataLoader may hold them."""

    @property
    def positions(self) -> tuple[tuple[int, int], ...]:
        """Where each stands, for a checkpoint."""
        return tuple(batches.place.position for batches in self._batches)

    def rewind(self) -> None:
        """Forgets what was taken since the function began."""
        for batches in self._batches:
            batches.place.rewind()

    def begin_again(self) -> None:
        """Puts all to its beginning, whatever the checkpoint says."""
        self._resumed_at = ()
        for batches in self._batches:
            batches.place.put((0, 0))

    def close(self) -> None:
        """End all passes, and the processes that load them."""
        for batches in self._batches:
            batches.close()

    def shard(self, channel: str, labels: torch.dtype) -> Shard:
        """See `TrainContext.shard`."""
        rows = self._held(channel)
        if isinstance(rows, ExampleSet | RayStream):
            raise TrialError(
                f"channel {channel!r} has examples, and no rows of features and labels; use "
                f"prepare_data({channel!r}), or context.dataset({channel!r}), which has all of them"
            )
        self._shown = channel
        if isinstance(rows, Stream):
            whole = rows.whole()
            return Shard(features=whole.features.to(self._device), labels=whole.labels.to(self._device, labels))
        return Shard(
            features=rows.features.to(self._device, copy=True),
            labels=rows.labels.to(self._device, labels, copy=True),
        )

    def dataset(self, channel: str) -> Dataset[Any]:
        """See `TrainContext.dataset`."""
        rows = self._held(channel)
        if not isinstance(rows, ExampleSet):
            raise TrialError(
                f"channel {channel!r} is a table; context.shard({channel!r}) has this worker's rows of it as tensors"
            )
        return rows.dataset()

    def prepare(
        self,
        data: str | DataLoader[Any],
        *,
        shuffle: bool,
        labels: torch.dtype,
        sharded: bool | None,
        collate_fn: Callable[[list[Any]], Any] | None,
        num_workers: int,
    ) -> Batches:
        """See `TrainContext.prepare_data`."""
        check_loading(collate_fn, num_workers)
        whole = None if isinstance(data, DataLoader) else self._held(data)
        if not isinstance(whole, ExampleSet | RayStream) and (collate_fn or num_workers):
            given = "collate_fn" if collate_fn else "num_workers"
            raise TrialError(f"{given} is for a channel of Examples; a DataLoader has its own, and a table needs none")
        if isinstance(data, DataLoader):
            batches = self._load(data, sharded)
        elif sharded is not None:
            raise TrialError(
                f"sharded={sharded!r} is for a DataLoader; a channel's rows are each worker's own, so leave it out"
            )
        elif isinstance(whole, ExampleSet | RayStream):
            if labels is not torch.float32:
                raise TrialError(
                    f"labels={labels} is for a table; channel {data!r} has examples of types of their own: leave it out"
                )
            batches = self._of_examples(whole, shuffle, collate_fn, num_workers)
        else:
            batches = self._cut(data, shuffle, labels)
        if len(self._batches) < len(self._resumed_at):
            batches.place.put(self._resumed_at[len(self._batches)])
        self._batches.append(batches)
        return batches

    def _held(self, channel: str) -> Held:
        if channel not in self._shards:
            raise TrialError(f"there is no channel {channel!r}; fit() was given {', '.join(self._shards)}")
        return self._shards[channel]

    def _cut(self, channel: str, shuffle: bool, labels: torch.dtype) -> Batches:
        """A channel in batches."""
        source, size = self._held(channel), self._batch_size()
        assert isinstance(source, Shard | Stream), "examples make their own batches"
        rows, seed = self._shard_rows[channel], self._order_seed()
        if isinstance(source, Stream):
            return stream_batches(
                source,
                rows,
                self._peers.rank,
                size,
                shuffle=shuffle,
                labels=labels,
                seed=seed,
                device=self._device,
                passes=self._passes,
            )
        shard = Shard(features=source.features, labels=source.labels.to(labels))  # Copied batch by batch.
        return shard_batches(
            shard, rows, self._peers.rank, size, shuffle=shuffle, seed=seed, device=self._device, passes=self._passes
        )

    def _of_examples(
        self,
        examples: ExampleSet | RayStream,
        shuffle: bool,
        collate_fn: Callable[[Any], Any] | None,
        num_workers: int,
    ) -> Batches:
        size = self._batch_size()
        if isinstance(examples, ExampleSet):
            rows = size.per_worker_batch_size
            loader = examples.loader(rows, shuffle=shuffle, collate_fn=collate_fn, num_workers=num_workers)
            return self._load(loader, False)
        if num_workers:
            raise TrialError(f"num_workers={num_workers}: Ray Data's tasks read this channel; leave it out")
        self._beat()
        return StreamedBatches(
            examples,
            self._peers,
            size,
            shuffle=shuffle,
            collate_fn=collate_fn,
            seed=self._order_seed(),
            device=self._device,
            passes=self._passes,
        )

    def _batch_size(self) -> BatchSize:
        if self._size is None:
            raise TrialError(f"hyperparameters give no batch size; give {PER_WORKER} or {GLOBAL}")
        return self._size

    def _order_seed(self) -> int:
        """Of the order in which the dataset that is prepared next comes."""
        return derive(self._seed, "order", len(self._batches))

    def _load(self, loader: DataLoader[Any], sharded: bool | None) -> Batches:
        size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
        batch_size = self._size.per_worker_batch_size if self._size else None
        if batch_size is not None and size is not None and batch_size != size:
            raise TrialError(
                f"the DataLoader has batch_size={size} and the hyperparameters give {PER_WORKER} {batch_size}; "
                "make it with batch_size=context.batch.per_worker_batch_size"
            )
        self._beat()
        make = IteratedBatches if isinstance(loader.dataset, IterableDataset) else loader_batches
        batches = make(
            loader,
            self._peers,
            self._size.gradient_accumulation_steps if self._size else 1,
            sharded=bool(sharded),
            seed=self._order_seed(),
            device=self._device,
            passes=self._passes,
        )
        if sharded is None and self._shown is not None:
            raise TrialError(
                f"prepare_data() got a DataLoader after shard({self._shown!r}), and cannot tell whose rows it has; say "
                "sharded=True if they are this worker's own, made of its shard, or sharded=False if every worker has "
                "all rows, which are then dealt out"
            )
        return batches
