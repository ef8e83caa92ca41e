"""Streaming of a Ray Dataset: parts of it, read while the gang trains, in an order of seed and pass alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Any

import torch

from trainers.channels import Streamed
from trainers.errors import DataError, TrialError
from trainers.pytorch.data.batches import BatchSize, updates_of
from trainers.pytorch.data.iterables import Arriving, rows_in
from trainers.pytorch.data.loading import Passes
from trainers.pytorch.data.transfer import sent
from trainers.pytorch.distribution import MicroBatch, Peers
from trainers.pytorch.state import derive

STALL_SECONDS = 300.0
"""How long the next batch is waited for."""

AHEAD = 1
"""Batches that Ray makes ready beside the one that a thread here holds: more would be threads that take turns."""

_SEEDS = 2**31
_END = object()


class RayStream:
    """A worker's part of a Ray Dataset, whose execution the workers of a gang share.

    Args:
        name: the channel's.
        form: the dataset.
    """

    def __init__(self, name: str, form: Streamed) -> None:
        self.name = name
        self.buffer = form.buffer
        self.lengths: dict[int, int] = {}
        """Batches of a whole pass, by their size."""
        self._form = form
        self._iterator: Any = None
        self._whole = True
        """Whether the last pass was read to its end, so that all workers may begin another one."""

    def __len__(self) -> int:
        return 0  # Counting would execute it.

    def join(self, peers: Peers) -> None:
        """Splits the dataset, if a worker has no part of it, or left a pass behind; every rank calls it."""
        if any(peers.gather(self._iterator is None or not self._whole)):
            parts = self._form.split(peers.world_size) if peers.rank == 0 else None
            self._iterator, self._whole = peers.gather(parts)[0][peers.rank], True

    def batches(
        self, size: int, seed: int | None, collate_fn: Callable[[Any], Any] | None, *, pinned: bool
    ) -> Iterator[Any]:
        """The batches of a pass.

        Args:
            size: rows of each but the last.
            seed: of their order in the buffer; None: as they come.
            collate_fn: see `ray.data.DataIterator.iter_torch_batches`.
            pinned: put them into pinned memory.

        Raises:
            DataError: the dataset cannot be read on, or gives nothing for `STALL_SECONDS`.
        """
        options = {"local_shuffle_buffer_size": self.buffer, "local_shuffle_seed": seed} if seed is not None else {}
        found = iter(
            self._iterator.iter_torch_batches(
                batch_size=size,
                prefetch_batches=AHEAD,
                collate_fn=collate_fn,
                device="cpu",
                pin_memory=pinned,
                **options,
            )
        )
        self._whole = False
        read = 0
        try:
            for batch in _in_time(found):
                read += 1
                yield batch
        except TimeoutError:
            raise DataError(
                f"channel {self.name!r}: its Ray Dataset gave no batch for {STALL_SECONDS:g} s, after {read} in this "
                "pass; leave CPUs of the cluster free for reading it, or look for what holds it up"
            ) from None
        except Exception as error:  # Of the user's functions, and Ray's own.
            why = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            raise DataError(
                f"channel {self.name!r}: its Ray Dataset ended early, after {read} batches of this pass: {why}"
            ) from error
        self._whole = True


def _in_time(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches, the next one taken by a thread while one is used.

    Raises:
        TimeoutError: one does not come.
    """
    reader = _Reader(batches)
    try:
        while True:
            try:
                batch, error = reader.ready.get(timeout=STALL_SECONDS)
            except queue.Empty:
                raise TimeoutError from None
            if error is not None:
                raise error
            if batch is _END:
                return
            reader.room.put(True)
            yield batch
    finally:
        reader.room.put(False)


class _Reader(threading.Thread):
    """Reads batches ahead, one at a time, until it is left; then it ends its part of the execution.

    Simple queues, since each batch passes through them, and since it may be left wherever Python collects garbage: a
    lock that is taken there may be held by that very thread.
    """

    def __init__(self, batches: Iterator[Any]) -> None:
        super().__init__(name="ray-data", daemon=True)
        self.ready: queue.SimpleQueue[tuple[Any, Exception | None]] = queue.SimpleQueue()
        self.room: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True for each batch that may be read; False when it is left."""
        self._batches = batches
        self.room.put(True)
        self.start()

    def run(self) -> None:
        """Reads."""
        try:
            while self.room.get():
                self.ready.put((next(self._batches, _END), None))
        except Exception as error:  # Whoever takes the batches raises it.
            self.ready.put((None, error))
        finally:
            if isinstance(self._batches, Generator):
                self._batches.close()


class StreamedBatches(Arriving):
    """Batches of a Ray Dataset: dicts of tensors, or what `collate_fn` makes; as many on every worker.

    Args:
        stream: the worker's part.
        peers: the gang's workers.
        size: of batches.
        shuffle: in the stream's buffer.
        collate_fn: see `RayStream.batches`.
        seed: of the order.
        device: where batches go.
        passes: is told of each.
    """

    def __init__(
        self,
        stream: RayStream,
        peers: Peers,
        size: BatchSize,
        *,
        shuffle: bool,
        collate_fn: Callable[[Any], Any] | None,
        seed: int,
        device: torch.device,
        passes: Passes,
    ) -> None:
        super().__init__(device, passes)
        stream.join(peers)
        self._stream, self._peers, self._size = stream, peers, size
        self._shuffle, self._collate_fn = shuffle, collate_fn
        self._seed = derive(seed, peers.rank)

    def __len__(self) -> int:
        if (known := self._stream.lengths.get(self._size.per_worker_batch_size)) is None:
            raise TypeError(
                f"channel {self._stream.name!r} is a stream, whose length nobody knows before its first end"
            )
        return known

    def _updates(self, number: int) -> Iterator[tuple[MicroBatch, Any]]:
        size, steps = self._size.per_worker_batch_size, self._size.gradient_accumulation_steps
        seed = derive(self._seed, number) % _SEEDS if self._shuffle else None
        batches = self._stream.batches(size, seed, self._collate_fn, pinned=self._device.type == "cuda")
        ready = sent(batches, self._device)
        read = 0
        while came := list(islice(ready, steps)):
            read += len(came)
            sizes = [[rows_in(batch) for batch in came]] * self._peers.world_size
            yield from zip(updates_of(self._peers.rank, sizes, steps), came, strict=True)
        whole = self._stream.lengths.setdefault(size, read)
        if read < max(1, whole):
            raise TrialError(
                f"channel {self._stream.name!r}: its Ray Dataset ended early, after {read} batches of pass {number}, "
                f"and has {max(1, whole)}; let it give the same rows in each pass, and at least one a worker"
            )
