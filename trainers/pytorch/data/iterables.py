"""Users' DataLoaders over iterable datasets: batches dealt to the workers as they come, and the same after a pause."""

from __future__ import annotations

import hashlib
import io
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from trainers.errors import TrialError
from trainers.pytorch.data.batches import updates_of
from trainers.pytorch.data.loaders import check_iteration, in_own_words
from trainers.pytorch.data.loading import Batches, Passes
from trainers.pytorch.data.transfer import moved
from trainers.pytorch.distribution import MicroBatch, Peers
from trainers.pytorch.state import derive, random_state


class Arriving(Batches):
    """Batches of which nobody knows how many there are before they have come.

    Args:
        device: where they go.
        passes: is told of each.
    """

    def __init__(self, device: torch.device, passes: Passes) -> None:
        super().__init__(lambda number: [], lambda number, start: iter(()), passes)
        self._device = device

    @abstractmethod
    def _updates(self, number: int) -> Iterator[tuple[MicroBatch, Any]]:
        """This worker's micro-batches of a pass, from its beginning."""

    def _iterate(self) -> Generator[Any]:
        number, start = self.place.position
        mine = self._latest = object()
        try:
            for at, (micro, batch) in enumerate(self._updates(number)):
                if at < start:
                    continue
                self.place.position = (number, at + 1)
                if not micro.rows and not torch.is_grad_enabled():
                    self._passes.absent(1)  # An evaluation counts rows: none may come twice.
                    continue
                self._completes = micro.last
                self._passes.begin(micro, number, self._done(at))
                yield moved(batch, self._device)
        finally:
            if self._latest is mine:
                self.place.position = (number + 1, 0)
        self._passes.end()

    def _done(self, at: int) -> float:
        """The part of the pass before a batch; 0 where nobody knows how long it is."""
        try:
            return min(1.0, at / len(self))
        except TypeError:
            return 0.0


class IteratedBatches(Arriving):
    """Batches of a DataLoader whose dataset says itself what comes, and when it ends.

    Dealt out, every worker reads all batches, and trains with every n-th. A worker's own (`sharded`) may be of any
    number: workers tell each other at each update. A pass that goes on after a pause reads again, and leaves out, what
    came before. What the dataset draws from global generators comes from the pass's seed, and changes nobody else's.

    Args:
        loader: the user's; its `batch_size` may be None where the dataset gives batches.
        peers: the gang's workers; every rank iterates alike.
        steps: backward passes to an update.
        sharded: the dataset's rows are this worker's own.
        seed: of the draws.
        device: where batches go.
        passes: is told of each.
    """

    def __init__(
        self,
        loader: DataLoader[Any],
        peers: Peers,
        steps: int,
        *,
        sharded: bool,
        seed: int,
        device: torch.device,
        passes: Passes,
    ) -> None:
        check_iteration(loader)
        super().__init__(device, passes)
        self._loader = loader
        self._peers = peers
        self._steps = steps
        self._sharded = sharded
        self._seed = derive(seed, peers.rank) if sharded else seed
        self._compared = sharded or peers.world_size == 1

    def __len__(self) -> int:
        whole = len(self._loader)  # Raises TypeError where the dataset has no length, as the loader does.
        return whole if self._sharded else -(-whole // self._peers.world_size)

    def _updates(self, number: int) -> Iterator[tuple[MicroBatch, Any]]:
        """This worker's micro-batches of a pass."""
        rank, workers = self._peers.rank, self._peers.world_size
        source = _Drawn(self._loader, derive(self._seed, number), number)
        latest: Any = None
        read = 0
        while True:
            came = list(islice(source, self._steps if self._sharded else self._steps * workers))
            self._compare(came)
            read += len(came)
            self._check_end(came, read)
            mine = came if self._sharded else came[rank::workers]
            if self._sharded:
                sizes = self._told([rows_in(batch) for batch in mine])
            else:
                sizes = [[rows_in(batch) for batch in came[other::workers]] for other in range(workers)]
            if not any(map(len, sizes)):
                return
            for at, micro in enumerate(updates_of(rank, sizes, self._steps)):
                latest = mine[at] if at < len(mine) else latest
                if latest is None:
                    raise TrialError(
                        f"the DataLoader's {type(self._loader.dataset).__name__} gives rank {rank} of {workers} no "
                        "batch; use fewer workers, or smaller batches"
                    )
                yield micro, latest

    def _check_end(self, came: list[Any], read: int) -> None:
        """Raises where the dataset ends before the length that it has."""
        if len(came) == self._steps * (1 if self._sharded else self._peers.world_size) or self._loader.drop_last:
            return
        try:
            said = len(self._loader)
        except TypeError:
            return
        if read < said:
            raise TrialError(
                f"the DataLoader's {type(self._loader.dataset).__name__} ended early, after {read} of the {said} "
                "batches that it has by len(); look for what broke off, or give it a length that is right"
            )

    def _told(self, mine: list[int]) -> list[list[int]]:
        """By rank, the rows of each batch of an update."""
        table = torch.zeros(self._peers.world_size, self._steps, dtype=torch.int64)
        table[self._peers.rank, : len(mine)] = torch.tensor(mine, dtype=torch.int64)
        return [[rows for rows in worker if rows] for worker in self._peers.sum(table).tolist()]

    def _compare(self, came: list[Any]) -> None:
        """Raises where a worker reads other batches than rank 0, and dealing them out would leave some out."""
        if self._compared:
            return
        self._compared = True
        digests = self._peers.gather(_digest(came))
        for rank, digest in enumerate(digests):
            if digest != digests[0]:
                raise TrialError(
                    f"the DataLoader's {type(self._loader.dataset).__name__} gives rank {rank} other rows than rank 0, "
                    "so that dealing them out would leave some out; let it give every worker the same, or, where its "
                    "rows are this worker's own, say prepare_data(loader, sharded=True)"
                )


class _Drawn:
    """A pass of a loader, with random states of its own, which go on from batch to batch."""

    def __init__(self, loader: DataLoader[Any], seed: int, number: int) -> None:
        for part in (loader.dataset, loader):
            if callable(told := getattr(part, "set_epoch", None)):
                told(number)
        self._device = torch.device("cpu")
        self._make: Callable[[], Iterator[Any]] = lambda: in_own_words(iter(_again(loader, seed)))
        self._batches: Iterator[Any] | None = None
        with random_state.kept(self._device):
            random_state.seed_all(seed)
            self._state = random_state.take(self._device)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with random_state.kept(self._device):
            random_state.put(self._state, self._device)
            try:
                if self._batches is None:
                    self._batches = self._make()
                return next(self._batches)
            finally:
                self._state = random_state.take(self._device)


def _again(loader: DataLoader[Any], seed: int) -> DataLoader[Any]:
    """The same loader, whose processes draw from a seed."""
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        drop_last=loader.drop_last,
        num_workers=loader.num_workers,
        collate_fn=loader.collate_fn,
        pin_memory=loader.pin_memory,
        timeout=loader.timeout,
        worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=torch.Generator().manual_seed(seed),
        prefetch_factor=loader.prefetch_factor,
    )


def rows_in(batch: Any) -> int:
    """How many rows a batch has: the length of the first tensor in it."""
    first = next(_tensors(batch), None)
    return 1 if first is None or not first.ndim else len(first)


def _tensors(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, dict | list | tuple):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from _tensors(part)


def _digest(batches: list[Any]) -> str:
    stream = io.BytesIO()
    torch.save(batches, stream)
    return hashlib.blake2b(stream.getvalue()).hexdigest()
