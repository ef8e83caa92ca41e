"""Users' DataLoaders: batches dealt to the workers, or a worker's own, drawn alike after every pause."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from trainers.errors import TrialError, WarmbandError
from trainers.pytorch.data.batches import micro_batches, updates_of
from trainers.pytorch.data.draws import Draws
from trainers.pytorch.data.loading import Batches, Passes
from trainers.pytorch.data.transfer import sent
from trainers.pytorch.distribution import MicroBatch, Peers
from trainers.pytorch.state import derive, seed_all


def loader_batches(
    loader: DataLoader[Any],
    peers: Peers,
    steps: int,
    *,
    sharded: bool,
    seed: int,
    device: torch.device,
    passes: Passes,
) -> Batches:
    """A DataLoader's batches, with the rows that its sampler draws; every rank calls it.

    Args:
        loader: the user's.
        peers: the gang's workers.
        steps: backward passes to an update.
        sharded: its rows are this worker's own; else every worker has all rows, and they are dealt out.
        seed: of the order.
        device: where batches go.
        passes: is told of each pass.

    Raises:
        TrialError: its rows cannot be dealt out, or its sampler cannot be followed.
    """
    check_iteration(loader)
    if loader.batch_size is None and loader.batch_sampler is None:
        raise TrialError(
            "the DataLoader has batch_size=None and gives single rows; give a batch_size or a batch_sampler"
        )
    rank = peers.rank
    draws = Draws(loader, derive(seed, rank) if sharded else seed, device)
    if draws.distributed and not sharded:
        raise TrialError(
            "the DataLoader has a DistributedSampler, and prepare_data() deals rows out by itself; leave the sampler "
            "out and give shuffle=True, or say prepare_data(loader, sharded=True)"
        )
    first = draws.checked(0)
    if not sharded:
        _check_alike(peers, first)
    shares = _Shares(draws, first, peers, steps, sharded=sharded, drop_last=loader.drop_last)
    feed = _Feed(loader, derive(seed, rank, "workers"), pin=device.type == "cuda")

    def load(number: int, start: int) -> Iterator[Any]:
        plan, mine = shares.of(number)
        again = mine[0][:1] if torch.is_grad_enabled() else []  # As in `shard_batches`.
        chosen = [(at, mine[at] if plan[at].rows else again) for at in range(start, len(plan))]
        drawn = feed.over([(derive(seed, rank, number, at), rows) for at, rows in chosen if rows], number)
        return sent(in_own_words(drawn), device, ahead=loader.num_workers > 0)

    return Batches(lambda number: shares.of(number)[0], load, passes, feed.close)


class _Shares:
    """One worker's batches of each pass, and how they fall into updates.

    Args:
        draws: gives the rows of a pass.
        first: those of pass 0.
        peers: the gang's workers.
        steps: backward passes to an update.
        sharded: as for `loader_batches`.
        drop_last: leave out what does not fill an update's every part.
    """

    def __init__(
        self, draws: Draws, first: list[Any], peers: Peers, steps: int, *, sharded: bool, drop_last: bool
    ) -> None:
        self._draws = draws
        self._rank, self._workers = peers.rank, peers.world_size
        self._steps = steps
        self._drop_last = drop_last
        # What other workers hold is asked once, since a pass has to begin without them.
        self._held: list[Any] | None = peers.gather(self._measured(first)) if sharded else None
        self._latest: tuple[int, tuple[list[MicroBatch], list[list[Any]]]] | None = None
        self._share(0, first)  # Raises what can be told before the first pass, whose weights may still be set.

    def of(self, number: int) -> tuple[list[MicroBatch], list[list[Any]]]:
        """Pass `number`: the plan, and this worker's batches, of which there may be fewer than in the plan."""
        if self._latest is None or self._latest[0] != number:
            self._latest = number, self._share(number, self._draws.of(number))
        return self._latest[1]

    def _share(self, number: int, drawn: list[Any]) -> tuple[list[MicroBatch], list[list[Any]]]:
        size = self._draws.batch_size
        if self._held is None:
            parts = [self._measured(drawn[rank :: self._workers]) for rank in range(self._workers)]
            mine = drawn[self._rank :: self._workers]
        else:
            parts, mine = self._held, drawn
            if self._measured(mine) != parts[self._rank]:
                raise TrialError(
                    f"the DataLoader's pass {number} has other batches than before, {len(mine)} or of other sizes, and "
                    "workers do not know those of each other; with sharded=True give a sampler whose passes are alike "
                    "in that, or give every worker all rows and say sharded=False"
                )
        if not all(parts):
            raise TrialError(
                f"the DataLoader gives {len(drawn)} {'rows' if size else 'batches'} for {self._workers} workers; use "
                "fewer workers"
            )
        if size is None:
            plan = updates_of(self._rank, parts, self._steps)
        else:
            plan = micro_batches(self._rank, parts, size, self._steps, drop_last=self._drop_last)
            mine = [mine[at * size : (at + 1) * size] for at in range(len(plan))]
        if not plan:
            raise TrialError(
                f"the DataLoader's drop_last=True leaves no batch of {size} rows on each of {self._workers} workers; "
                "give smaller batches, or drop_last=False"
            )
        return plan, mine

    def _measured(self, drawn: list[Any]) -> Any:
        """How many rows there are; of batches, in each."""
        return len(drawn) if self._draws.batch_size else [len(batch) for batch in drawn]


class _Feed:
    """Runs a DataLoader over batches that are told pass by pass; keeps its processes from pass to pass if it did.

    Args:
        loader: the user's.
        seed: of what its processes draw before their first batch.
        pin: put batches into pinned memory, as they go to a GPU.
    """

    def __init__(self, loader: DataLoader[Any], seed: int, *, pin: bool) -> None:
        self._loader = loader
        self._pin = pin or loader.pin_memory
        self._seed = seed
        self._told: list[Any] = []
        self._kept: DataLoader[Any] | None = None

    def over(self, batches: Sequence[tuple[int, list[Any]]], number: int) -> Iterator[Any]:
        """The batches of a pass, loaded.

        Args:
            batches: a seed and rows of each.
            number: of the pass.
        """
        told = list(batches) if self._loader.num_workers else [rows for _, rows in batches]
        if not self._loader.persistent_workers:
            return iter(self._like(told, derive(self._seed, number)))
        self._told[:] = told
        if self._kept is None:
            self._kept = self._like(self._told, self._seed)
        return iter(self._kept)

    def close(self) -> None:
        """End the processes that are kept."""
        self._kept = None

    def _like(self, told: list[Any], seed: int) -> DataLoader[Any]:
        """The same loader over these batches; they come in order, since a pass has to come alike each time."""
        loader = self._loader
        return DataLoader(
            _Seeded(loader.dataset) if loader.num_workers else loader.dataset,
            batch_sampler=told,
            num_workers=loader.num_workers,
            collate_fn=loader.collate_fn,
            pin_memory=self._pin,
            timeout=loader.timeout,
            worker_init_fn=loader.worker_init_fn,
            multiprocessing_context=loader.multiprocessing_context,
            generator=torch.Generator().manual_seed(seed),
            prefetch_factor=loader.prefetch_factor,
            persistent_workers=loader.persistent_workers,
        )


class _Seeded(Dataset[Any]):
    """A dataset in a process of a DataLoader: what it draws for a batch depends on the batch's seed alone.

    Not on which process loads it, or on what that loaded before: a pass that goes on draws as one that was not left.
    Attributes are the dataset's own, for a `worker_init_fn` that reads or sets them.
    """

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.__dict__["_dataset"] = dataset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._dataset, name, value)

    def __reduce__(self) -> tuple[type[_Seeded], tuple[Dataset[Any]]]:
        return _Seeded, (self.__dict__["_dataset"],)

    def __getitem__(self, row: Any) -> Any:
        return self._dataset[row]

    def __getitems__(self, batch: tuple[int, list[Any]]) -> list[Any]:
        seed, rows = batch
        seed_all(seed)
        several: Callable[[list[Any]], list[Any]] | None = getattr(self._dataset, "__getitems__", None)
        return several(rows) if several else [self._dataset[row] for row in rows]


def in_own_words(batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; of errors about data in a DataLoader's process, what they say, without its traceback."""
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except WarmbandError as error:
            raise type(error)(str(error).rpartition(f"{type(error).__name__}: ")[2].strip()) from error
        yield batch


def check_iteration(loader: DataLoader[Any]) -> None:
    """Raises where a loader says itself which batches come."""
    if type(loader).__iter__ is not DataLoader.__iter__:
        raise TrialError(
            f"{type(loader).__name__} has an __iter__ of its own, which would not be used, since prepare_data() says "
            "which batches are loaded; give a plain DataLoader"
        )


def _check_alike(peers: Peers, drawn: list[Any]) -> None:
    """Raises where workers have other rows than rank 0, and dealing them out would leave some out."""
    digests = peers.gather(hashlib.blake2b(repr(drawn).encode()).hexdigest())
    for rank, digest in enumerate(digests):
        if digest != digests[0]:
            raise TrialError(
                f"the DataLoader draws other rows on rank {rank} than on rank 0, so that dealing them out would leave "
                "some out; give every worker the same dataset and sampler, or, where its rows are this worker's own, "
                "say prepare_data(loader, sharded=True)"
            )
