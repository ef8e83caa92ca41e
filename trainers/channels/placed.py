"""A named input of a trainer, on its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.blocks import in_blocks
from trainers.channels.distribution import WHOLE
from trainers.channels.labels import LabelRule
from trainers.channels.table import Shards, Table, check_filled, check_shard
from trainers.errors import ConfigurationError, DataError

if TYPE_CHECKING:  # A worker loads the one that it reads.
    from trainers.channels.examples import PlacedExamples
    from trainers.channels.files import Files, LibsvmFiles
    from trainers.channels.folder import PlacedFolder
    from trainers.channels.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedChannel:
    """A channel as workers see it: small, and picklable while the driver that placed it lives."""

    name: str
    num_workers: int
    source: Files | LibsvmFiles | Memory | Shards | PlacedFolder | PlacedExamples
    rules: tuple[LabelRule, ...] = ()
    preparation: Mapping[str, Any] = field(default_factory=dict)
    """See `Channel.preparation`."""
    measured: bool = False
    """Whether the objective of the job is measured on it."""

    def read(self, rank: int, world_size: int) -> Table:
        """The shard of one rank; `world_size` has to be what the channel was placed for, any for 0 workers."""
        with about(self.name):
            self._check_rank(rank, world_size)
            return checked(self.rules, self.source.read(rank, world_size), complete=world_size == 1)

    def _check_rank(self, rank: int, world_size: int) -> None:
        if self.num_workers and world_size != self.num_workers:
            raise ConfigurationError(f"placed for {self.num_workers} workers and read by {world_size}; place it again")
        check_shard(None if isinstance(self.source, Shards) else self.source.rows, rank, world_size)

    def blocks(self, rank: int, world_size: int, most: int) -> Iterator[Table]:
        """The shard of one rank a block at a time, so that it is never held whole.

        Args:
            rank: as for `read`.
            world_size: as for `read`; or 1, for all rows, whatever the channel was placed for.
            most: bytes of a block's features.

        Raises:
            DataError: rows are damaged or not what is expected; files' errors name the row. The labels of all blocks
                together are not looked at: see `check_classes`.
        """
        with about(self.name):
            if world_size > 1:
                self._check_rank(rank, world_size)
            decoded = getattr(self.source, "with_categories", lambda block: block)  # Files' pieces hold codes.
            yield from map(decoded, in_blocks(map(self._expected, self._filled(rank, world_size)), most))

    def _filled(self, rank: int, world_size: int) -> Iterator[Table]:
        """Pieces of a rank's rows that have some, checked."""
        rows = 0
        for piece in self.source.each(rank, world_size):
            rows += len(piece.labels)
            if len(piece.labels):
                yield piece
        check_filled(rows, {})

    def _expected(self, piece: Table) -> Table:
        return checked(self.rules, piece, complete=False)

    @property
    def replicated(self) -> bool:
        """Whether each worker reads all rows."""
        return bool(getattr(self.source, "distribution", None) == WHOLE)

    @property
    def classes(self) -> int:
        """How many different labels are expected of all rows together, at least."""
        return max((rule.classes for rule in self.rules), default=1)

    def check_classes(self, labels: NDArray[np.float32]) -> None:
        """Checks what a shard may lack and all rows have to have: workers that read shards ask each other.

        Args:
            labels: the different ones of all rows, as many as `classes` asks for.

        Raises:
            DataError: there are too few.
        """
        with about(self.name):
            check_labels(self.rules, labels, complete=True)

    def pieces(self, rank: int, world_size: int) -> list[Callable[[], Table]]:
        """The shard of one rank in pieces, each read when it is called for: a Ray Dataset's blocks, or all in one."""
        if isinstance(self.source, Shards) and len(self.source.pieces[rank]) > 1:
            filled = [piece for piece in self.source.pieces[rank] if self.source.rows(piece)]
            return [partial(self._piece, piece) for piece in filled] or [partial(self.read, rank, world_size)]
        return [partial(self.read, rank, world_size)]

    def _piece(self, reference: Any) -> Table:
        with about(self.name):
            return checked(self.rules, Shards(pieces=((reference,),)).read(0, 1), complete=False)

    def read_whole(self) -> Table:
        """All rows, in their order."""
        with about(self.name):
            return checked(self.rules, self.source.read_whole(), complete=True)


def checked(rules: tuple[LabelRule, ...], table: Table, *, complete: bool) -> Table:
    """Rows whose labels are what is expected; see `LabelRule.check`."""
    check_labels(rules, table.labels, complete=complete)
    return table


def check_labels(rules: tuple[LabelRule, ...], labels: NDArray[np.float32], *, complete: bool) -> None:
    """Checks labels by rules; see `LabelRule.check`."""
    for rule in rules:
        rule.check(labels, complete=complete)


@contextmanager
def about(name: str) -> Iterator[None]:
    """Says in errors which channel they are about."""
    try:
        yield
    except (ConfigurationError, DataError) as error:
        raise type(error)(f"channel {name!r}: {error}") from error.__cause__
