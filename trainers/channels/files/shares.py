"""Shares of files: what each rank reads of them, whole or some rows of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from trainers.channels.files.dealing import deal
from trainers.channels.files.kinds import PACKING, is_packed
from trainers.channels.files.partitions import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file; `weight` is what balances shards: rows of a Parquet file, bytes of a CSV file.

    Args:
        path: where it is, in its file system.
        weight: as above.
        groups: rows of each row group of a Parquet file.
        values: of the columns that the names of its directories make.
    """

    path: str
    weight: int
    groups: tuple[int, ...] = ()
    values: tuple[Value, ...] = ()

    def row(self, groups: tuple[int, ...], before: int, place: int) -> int:
        """The number of a row in the file, from 1, where row groups are read alone: `before` + `place` of these."""
        left = before + place
        for group in groups:
            if left < self.groups[group]:
                return sum(self.groups[:group]) + left + 1
            left -= self.groups[group]
        return left + 1


Part = tuple[File, tuple[int, ...]]
"""A file, and which of its row groups; none stand for all."""


class Share(NamedTuple):
    """Parts that a rank reads, and which of their rows are its own: by default all."""

    parts: list[Part]
    rank: int = 0
    world_size: int = 1
    turns: tuple[int, ...] = ()

    @property
    def weight(self) -> int:
        """Of all that is read; see `File`."""
        return sum(
            sum(file.groups[group] for group in groups) if groups else file.weight for file, groups in self.parts
        )


def _by_file(parts: Iterable[tuple[File, int]]) -> list[Part]:
    return [(file, tuple(group for _, group in own)) for file, own in groupby(parts, key=lambda part: part[0])]


def text_bytes(files: Sequence[File]) -> int:
    """Bytes of CSV files, about those of what is in them where they are compressed."""
    return sum(file.weight * (PACKING if is_packed(file.path) else 1) for file in files)


def shares(
    files: Sequence[File], rank: int, world_size: int, *, small: Callable[[Sequence[File]], bool]
) -> Iterator[Share]:
    """What a rank reads: files whole, then row groups whole, then its rows of what is left.

    Args:
        files: all of a channel.
        rank: of the worker.
        world_size: how many there are.
        small: whether files are so small that every rank may as well decode all of them.
    """
    dealt = deal([file.weight for file in files], world_size)
    yield Share([(files[index], ()) for index in dealt.whole[rank]])
    rest = [files[index] for index in dealt.by_row]
    left: list[Part] = [(file, ()) for file in rest]
    if small(rest):
        yield Share(left, rank, world_size)
        return
    if sum(len(file.groups) for file in rest) > 1:
        parts = [(file, group) for file in rest for group in range(len(file.groups))]
        dealt = deal([file.groups[group] for file, group in parts], world_size)
        yield Share(_by_file(parts[index] for index in dealt.whole[rank]))
        left = [(parts[index][0], (parts[index][1],)) for index in dealt.by_row]
    for part, turns in zip(left, dealt.turns, strict=True):
        if rank in turns:
            yield Share([part], rank, world_size, turns)
