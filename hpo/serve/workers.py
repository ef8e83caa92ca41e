"""Workers: a few threads for what blocks, so that the event loop never does, and a queue that has an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from hpo.serve.errors import RefusedError

_T = TypeVar("_T")


class Workers:
    """Threads for calls that block.

    Args:
        threads: how many.
        waiting: calls that may wait for one; what comes then is refused.
        seconds: for which a caller waits; the call itself goes on in its thread.
        what: that is waited for, in the message.
    """

    def __init__(self, threads: int, waiting: int, seconds: float, what: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=what.replace(" ", "-"))
        self._most, self._seconds, self._what = threads + waiting, seconds, what
        self._under_way = 0

    async def run(self, call: Callable[[], _T]) -> _T:
        """Calls in a thread.

        Raises:
            RefusedError: too many wait, or it takes too long.
        """
        if self._under_way >= self._most:
            raise RefusedError(503, "Busy", f"{self._under_way} requests wait for {self._what} already", wait=1.0)
        self._under_way += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        future.add_done_callback(self._done)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(future)
        except TimeoutError:
            if future.done():
                return future.result()
            message = f"{self._what} did not answer within {self._seconds:g} s"
            raise RefusedError(503, "DatabaseAway", message, wait=5.0) from None

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._under_way -= 1
        if not future.cancelled():
            future.exception()  # Nobody may wait for it any more.

    def close(self) -> None:
        """Takes no more calls; those under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
