"""Planning of a job's gangs from the work that is left and the gangs that run; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a gang of so many workers."""

    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give an idle gang back, for one of another size."""

    gang: str


def next_change(
    sizes: Mapping[int, int],
    gangs: Mapping[str, int],
    idle: Sequence[str],
    *,
    worth_another: bool,
    fits: Callable[[int, Sequence[str]], bool],
) -> Start | Release | None:
    """The next change, one at a time.

    A size without a gang gets one whatever it costs, since nothing else serves its trials: where it does not fit, idle
    gangs go, the least recently used first, if there is room for it without them. A further gang of a size is
    started where it fits and is worth it; nothing is given back for it.

    Args:
        sizes: how many gangs of each size could be busy, the most urgent size first.
        gangs: workers of each gang that is there.
        idle: those of them that have nothing to serve, the least recently used first.
        worth_another: whether the work that is left is worth the start of a further gang.
        fits: whether a gang of so many workers fits, once these others are given back.
    """
    there = list(gangs.values())
    for workers, count in sizes.items():
        mine = there.count(workers)
        if mine >= count or (mine and not worth_another):
            continue
        if fits(workers, ()):
            return Start(workers=workers)
        if not mine and idle and fits(workers, idle):
            return Release(gang=idle[0])
    return None


class Programs(Generic[Made]):
    """Programs of gangs by size, which may hold a copy of all rows: let go once another size needs room.

    Args:
        make: what gangs of so many workers run.
    """

    def __init__(self, make: Callable[[int], Made]) -> None:
        self._make = make
        self._made: dict[int, Made] = {}

    def of(self, workers: int, in_use: Collection[int]) -> Made:
        """The program of a gang of so many workers.

        Args:
            workers: how many.
            in_use: sizes of the gangs that are there; a gang that loses workers starts others with what it has.
        """
        if workers not in self._made:
            self._made = {size: made for size, made in self._made.items() if size in in_use}
            self._made[workers] = self._make(workers)
        return self._made[workers]
