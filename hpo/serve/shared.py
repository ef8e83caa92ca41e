"""Shared: what many clients ask for at the same time is made once for all of them."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hpo.serve.workers import Workers

_T = TypeVar("_T")

IDLE_SHARE = 4.0
"""What took a second to make serves for so many seconds, though something has changed meanwhile."""

SHORTEST = 0.2
"""Seconds for which anything serves."""


@dataclass(frozen=True, slots=True)
class _Made(Generic[_T]):
    value: _T
    version: Hashable
    until: float


class Shared(Generic[_T]):
    """Values by key, each for a version of what it is made of; a caller gets the last one for a little longer.

    Args:
        workers: whose threads make them.
        most: values that are kept; the one that was not asked for longest goes first.
        clock: seconds.
    """

    def __init__(self, workers: Workers, most: int = 256, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._most, self._clock = workers, most, clock
        self._made: OrderedDict[Hashable, _Made[_T]] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Task[_T]] = {}

    async def get(self, key: Hashable, version: Hashable, make: Callable[[], _T]) -> _T:
        """The value of a key, made in a thread where none of this version is there.

        Args:
            key: says what.
            version: says of what state; None is never the same.
            make: makes it.
        """
        made = self._made.get(key)
        if made is not None and ((version is not None and made.version == version) or self._clock() < made.until):
            self._made.move_to_end(key)
            return made.value
        if (task := self._under_way.get(key)) is None:
            task = self._under_way[key] = asyncio.create_task(self._make(key, version, make))
        return await asyncio.shield(task)  # Others wait for it when this caller has gone.

    async def _make(self, key: Hashable, version: Hashable, make: Callable[[], _T]) -> _T:
        began = self._clock()
        try:
            value = await self._workers.run(make)
        finally:
            del self._under_way[key]
        now = self._clock()
        self._made[key] = _Made(value, version, now + max(SHORTEST, IDLE_SHARE * (now - began)))
        self._made.move_to_end(key)
        if len(self._made) > self._most:
            self._made.popitem(last=False)
        return value
