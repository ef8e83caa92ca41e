"""Stream of events to one client: what it has missed, then each event as it comes, until one of the two ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hpo.serve.following.feed import Position, event_of
from hpo.serve.following.hub import Follower

RETRY = b"retry: 1000\n\n"
"""Milliseconds after which a browser comes back."""

BEAT_SECONDS = 15.0
"""After so long without an event the client is sent a comment, so that either side notices that the other is gone."""


CHECK_SECONDS = 1.0
"""For which a client may follow before it is asked again whether it may."""


class EventStream(Response):
    """The response of a stream, as ASGI has it.

    Args:
        follower: whose events; it has looked at its job once.
        last: the id of the last event that the client has seen; empty where it begins.
        send_seconds: within which the client has to take what it is sent.
        dropped: called with the client's address where it did not.
        allowed: whether the client may follow still: its token may be removed meanwhile.
        count: told 1 as the stream begins, and -1 as it ends.
    """

    def __init__(
        self,
        follower: Follower,
        last: str,
        *,
        send_seconds: float,
        dropped: Callable[[tuple[str, int] | None], None] = lambda client: None,
        allowed: Callable[[], bool] = lambda: True,
        count: Callable[[int], None] = lambda change: None,
    ) -> None:
        super().__init__()
        self._follower, self._last = follower, Position.of(last) if last else None
        self._begins = not last
        self._seconds, self._dropped, self._allowed = send_seconds, dropped, allowed
        self._count = count
        self._asked = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        self._follower.listeners += 1
        self._count(1)
        self._follower.start()
        tasks = {asyncio.create_task(self._pump(send)), asyncio.create_task(_gone(receive))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if isinstance(error, TimeoutError):
                    self._dropped(scope.get("client"))
                elif error is not None:
                    raise error
        finally:
            self._follower.listeners -= 1
            self._count(-1)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pump(self, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        feed = self._follower.feed
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        number = feed.next
        begin = await self._beginning(number)
        if begin is None:
            assert self._last is not None
            number, begin = self._last.number + 1, b""
        await self._send(send, RETRY + begin)
        while True:
            came = await feed.wait(number, BEAT_SECONDS)
            if not self._may_go_on():
                await self._send(send, event_of("end", b"{}"), more=False)
                return
            if (reached := feed.next) > number:
                events = feed.since(number)
                # Who is so far behind reads the job anew.
                await self._send(send, event_of("reset", b"{}", feed.id) if events is None else events)
                number = reached
            elif feed.closed:
                await self._send(send, event_of("end", b"{}"), more=False)
                return
            elif not came:
                await self._send(send, b":\n\n")

    def _may_go_on(self) -> bool:
        now = time.monotonic()
        if now - self._asked < CHECK_SECONDS:
            return True
        self._asked = now
        return self._allowed()

    async def _beginning(self, number: int) -> bytes | None:
        """What a client is sent first; None where its feed is this one, and has all behind its last event."""
        feed, last = self._follower.feed, self._last
        if last is not None and last.feed == feed.name and feed.since(min(last.number + 1, number - 1)) is not None:
            return None if last.number < number else event_of("reset", b"{}", feed.id)
        if self._begins:
            return event_of("hello", b"{}", feed.id)
        events = None if last is None else await self._follower.missed(last)
        if events is None:
            return event_of("reset", b"{}", feed.id)
        return events + event_of("hello", b"{}", feed.id)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        async with asyncio.timeout(self._seconds):
            await send({"type": "http.response.body", "body": body, "more_body": more})


async def _gone(receive: Receive) -> None:
    """Waits until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
