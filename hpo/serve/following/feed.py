"""Feed: the last events of a job, encoded once for all who listen to them."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from dataclasses import dataclass
from typing import Any

from hpo.serve.encoding import encoded

MOST_EVENTS, MOST_BYTES = 2000, 16 * 1024 * 1024
"""What is kept: whoever is further behind is dropped, and begins anew from the record when it comes back."""

_ID = re.compile(r"([0-9a-f]{8})\.(\d{1,15})\.(\d{1,12}\.\d{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a listener is, as the id of the last event that it has seen says.

    Args:
        feed: the feed's own name, another after a restart of the server.
        number: of the event in that feed.
        at: unix seconds, by the driver's clock, up to which it has seen all.
    """

    feed: str
    number: int
    at: float

    @classmethod
    def of(cls, text: str) -> Position | None:
        """The position of an id; None where it is not one."""
        found = _ID.fullmatch(text)
        return found and cls(feed=found[1], number=int(found[2]), at=float(found[3]))


class Feed:
    """The last events, in order. Of the event loop alone, but `name`."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(4)
        self.closed = False
        self._events: deque[bytes] = deque()
        self._bytes, self._first = 0, 1
        self._at = 0.0
        self._changed = asyncio.Event()

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self._first + len(self._events)

    @property
    def id(self) -> str:
        """The id of who has seen all."""
        return f"{self.name}.{self.next - 1}.{self._at:.3f}"

    def put(self, kind: str, value: Any, at: float) -> None:
        """Adds an event.

        Args:
            kind: its name.
            value: anything that is JSON, or JSON already.
            at: what is in it is not older than this, by the driver's clock.
        """
        self._at = max(self._at, at)
        data = value if isinstance(value, bytes) else encoded(value)
        event = event_of(kind, data, f"{self.name}.{self.next}.{self._at:.3f}")
        self._events.append(event)
        self._bytes += len(event)
        while len(self._events) > MOST_EVENTS or (self._bytes > MOST_BYTES and len(self._events) > 1):
            self._bytes -= len(self._events.popleft())
            self._first += 1
        self._tell()

    def since(self, number: int) -> bytes | None:
        """All events from a number on, as they are sent; None where some of them are not kept any more."""
        if number < self._first:
            return None
        if number == self.next - 1:
            return self._events[-1]
        return b"".join(list(self._events)[number - self._first :])

    async def wait(self, number: int, seconds: float) -> bool:
        """Waits for the event of a number, or the end; returns whether it came in time."""
        if self.next > number or self.closed:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Ends all streams of it."""
        self.closed = True
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def event_of(kind: str, data: bytes, id: str = "") -> bytes:
    """An event as it is sent; JSON has no line breaks."""
    head = f"id: {id}\n" if id else ""
    return b"%sevent: %s\ndata: %s\n\n" % (head.encode(), kind.encode(), data)
