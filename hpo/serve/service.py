"""`Service`: what all parts of the server share: record, threads, followed jobs and tokens."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from hpo.record import Store, acting, is_away
from hpo.serve.apart import SECONDS
from hpo.serve.errors import RefusedError
from hpo.serve.following import EventStream, Follower, Hub, HubTimes
from hpo.serve.security import Codes, Sessions, Tokens, Who
from hpo.serve.settings import ServeSettings
from hpo.serve.shared import Shared
from hpo.serve.starting import checks
from hpo.serve.workers import Workers
from trainers.errors import ConfigurationError, WarmbandError

_log = logging.getLogger("warmband.serve")
_T = TypeVar("_T")

READERS, ACTORS, CREATORS = 8, 4, 4
"""Threads for reading the record, for acts, and for creations of jobs, which must not wait behind each other."""
CREATION_SECONDS = SECONDS + 20.0
"""For which a client waits for a creation: its process is given up before."""


class Service:
    """What all parts of the server share.

    Args:
        settings: of the server.
        tokens: that are known; None reads the settings' file.
        times: of looks at jobs.

    Raises:
        ConfigurationError: tokens, key or the record's URL are wrong.
    """

    def __init__(self, settings: ServeSettings, tokens: Tokens | None = None, times: HubTimes | None = None) -> None:
        self.settings = settings
        self.tokens = Tokens(settings.tokens_file) if tokens is None else tokens
        self.sessions = Sessions(self.tokens, settings.folder / "session.key")
        self.codes = Codes(self.tokens, settings.folder / "login-codes")
        self.readers = Workers(READERS, 200, settings.database_seconds, "the database")
        self.actors = Workers(ACTORS, 20, 4 * settings.database_seconds, "the act")
        self.creators = Workers(CREATORS, 12, CREATION_SECONDS, "the creation of a job")
        self.hub = Hub(self.open, self.readers, times or HubTimes())
        self.documents: Shared[tuple[bytes, str]] = Shared(self.readers)
        self.drop: Callable[[tuple[str, int] | None], None] = lambda client: None
        """Cuts the connection of a client that takes nothing; the server that runs the app puts it here."""
        self._streams: Counter[str] = Counter()
        """Clients that follow events, by the names of tokens."""
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._problem: tuple[float, WarmbandError] | None = None

    def open(self) -> Store:
        """The record, opened when it is first needed; for threads.

        Raises:
            ConfigurationError, WarmbandError: it cannot be opened, which is not tried more than once a second.
        """
        with self._opening:
            if self._store is None:
                if self._problem is not None and time.monotonic() - self._problem[0] < 1.0:
                    raise self._problem[1]
                try:
                    self._store = Store(self.settings.store)
                except WarmbandError as error:
                    if not is_away(error):
                        raise
                    self._problem = (time.monotonic(), error)
                    raise
            return self._store

    def stream(self, follower: Follower, last: str, who: Who) -> EventStream:
        """A response with events, which ends with the token or the session of who asks for it.

        Raises:
            RefusedError: too many clients follow events, or the server ends.
        """
        if self.hub.closed:
            raise RefusedError(503, "Ending", "the server is about to end", wait=2.0)
        if (own := self._streams[who.name]) >= self.settings.streams_of_one:
            message = f"{own} clients follow events with the token {who.name!r} already; end one of them"
            raise RefusedError(429, "TooManyRequests", message, wait=30.0)
        if self.hub.listeners >= self.settings.streams:
            raise RefusedError(503, "Busy", f"{self.hub.listeners} clients follow events already", wait=30.0)

        def count(change: int) -> None:
            self._streams[who.name] += change
            if not self._streams[who.name]:
                del self._streams[who.name]

        def allowed() -> bool:
            try:
                if who.cookie:
                    return self.sessions.find(who.cookie) is not None
                return self.tokens.of_digest(who.digest) is not None
            except ConfigurationError:  # Somebody has broken the file of tokens.
                return False

        bound = self.settings.send_seconds
        return EventStream(follower, last, send_seconds=bound, dropped=self.drop, allowed=allowed, count=count)

    async def act(self, who: Who, job: str, call: Callable[[Store], _T]) -> _T:
        """Does something to a job, in a thread, as what the record says that this person did.

        Raises:
            RefusedError, WarmbandError: it does not go.
        """

        def done() -> _T:
            with acting(by=who.name, door="REST"):
                return call(self.open())

        try:
            result = await self.actors.run(done)
        finally:
            self.hub.forget(job)
        _log.info("%s from %s acted on %s", who.name, who.address, job)
        return result

    def end(self) -> None:
        """Ends all streams; for the event loop."""
        self.hub.close()

    def close(self) -> None:
        """Lets go of threads, of the record and of checks."""
        self.readers.close()
        self.actors.close()
        self.creators.close()
        checks.end()
        if self._store is not None:
            self._store.close()
