"""Hub: the jobs that are followed, each with one task that looks at the record for all who ask."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hpo.record import Store
from hpo.serve.encoding import encoded
from hpo.serve.errors import RefusedError, as_refusal
from hpo.serve.following.feed import Feed, Position, event_of
from hpo.serve.following.followed import FollowedJob
from hpo.serve.following.job_list import JobList
from hpo.serve.workers import Workers
from trainers.errors import WarmbandError

_log = logging.getLogger("warmband.serve")


LATELY = 0.2
"""The share of the last look in what looks take, and what telling of them does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTimes:
    """Seconds.

    Args:
        look: between two looks at a job; what looks, and telling all who listen, take lately is added four times over.
        away: between two tries of a database that is away.
        keep: for which a job is followed after the last who asked for it.
    """

    look: float = 0.25
    away: float = 1.0
    keep: float = 120.0


class Follower:
    """Looks at one job, or at the list of jobs, as long as somebody wants to know. Of the event loop alone.

    Args:
        make: opens what is looked at, in a thread.
        workers: threads.
        times: see there.
    """

    def __init__(self, make: Callable[[], Any], workers: Workers, times: HubTimes) -> None:
        self._make, self._workers, self._times = make, workers, times
        self.feed = Feed()
        self.followed: Any = None
        self.listeners = 0
        self.asked = time.monotonic()
        self._looked = -1e9
        self._cost = self._telling = 0.0
        self._problem: RefusedError | None = None
        self._look: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._missed: dict[tuple[str, int], asyncio.Task[bytes | None]] = {}

    @property
    def version(self) -> tuple[str, int]:
        """Another one after every change, also across restarts of the server."""
        return self.feed.name, self.followed.version

    @property
    def idle(self) -> bool:
        """Whether nobody has asked for it for a while."""
        return not self.listeners and time.monotonic() - self.asked > self._times.keep

    async def fresh(self) -> Any:
        """What is followed, not older than a fraction of a second.

        Raises:
            RefusedError, WarmbandError: the database is away, or there is no such job.
        """
        self.asked = time.monotonic()
        if self.asked - self._looked > self._pause:
            await self.look()
        if self._problem is not None:
            raise self._problem
        return self.followed

    @property
    def _pause(self) -> float:
        return self._times.look + 4 * (self._cost + self._telling)

    async def missed(self, last: Position) -> bytes | None:
        """The events that a client of another feed has missed, as of a restart of the server; None where they are many.

        After a restart all clients come with the same position, or few different ones.
        """
        key = (last.feed, last.number)
        if key not in self._missed:
            if len(self._missed) > 8:
                self._missed.clear()
            self._missed[key] = asyncio.create_task(self._find_missed(last.at))
            asyncio.get_running_loop().call_later(5.0, self._missed.pop, key, None)
        return await asyncio.shield(self._missed[key])

    async def _find_missed(self, at: float) -> bytes | None:
        def read() -> bytes | None:
            events = self.followed.since(at)
            if events is None:
                return None
            return b"".join(event_of(kind, encoded(value)) for kind, value, _ in events)

        return await self._workers.run(read)

    async def look(self) -> None:
        """Looks once; who comes meanwhile waits for the same look."""
        if self._look is None:
            self._look = asyncio.create_task(self._do_look())
            self._look.add_done_callback(self._looked_once)
        await asyncio.shield(self._look)

    def _looked_once(self, task: asyncio.Task[None]) -> None:
        self._look = None
        if not task.cancelled():
            task.exception()

    async def _do_look(self) -> None:
        began = time.monotonic()
        try:
            if self.followed is None:
                self.followed = await self._workers.run(self._make)
            events = await self._workers.run(self.followed.look)
        except WarmbandError as error:
            self._trouble(as_refusal(error))
            raise
        finally:
            self._looked = time.monotonic()
        # One look in some compares all trials, and is not to hold up what comes next.
        self._cost += LATELY * (self._looked - began - self._cost)
        if self._problem is not None:
            self._problem = None
            self.feed.put("back", {}, 0.0)
        began_to_tell = time.thread_time()
        for kind, value, at in events:
            self.feed.put(kind, value, at)
        await asyncio.sleep(0)  # All who listen are sent them now, before this goes on.
        self._telling += LATELY * (time.thread_time() - began_to_tell - self._telling)

    def _trouble(self, refusal: RefusedError) -> None:
        if refusal.status < 500:
            if self.followed is not None and not self.feed.closed:
                self.feed.put("gone", {"message": str(refusal)}, 0.0)
            self.feed.close()
        elif self._problem is None and self.followed is not None:
            self.feed.put("away", {"message": str(refusal)}, 0.0)
        self._problem = refusal

    def start(self) -> None:
        """Goes on looking by itself."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self.feed.closed and self.listeners:
            try:
                await self.look()
                pause = self._pause
            except WarmbandError:
                pause = self._times.away
            except Exception:
                _log.exception("a look at the record failed")
                pause = self._times.away
            await asyncio.sleep(pause)

    def stop(self) -> None:
        """Ends all streams."""
        self.feed.close()
        if self._task is not None:
            self._task.cancel()


class Hub:
    """All that is followed.

    Args:
        store: gives the record, in a thread; it raises while that is away.
        workers: threads.
        times: see there.
    """

    def __init__(self, store: Callable[[], Store], workers: Workers, times: HubTimes) -> None:
        self._store, self._workers, self._times = store, workers, times
        self._jobs: dict[str, Follower] = {}
        self._list: Follower | None = None
        self.closed = False

    def job(self, name: str) -> Follower:
        """Who follows a job."""
        self._sweep()
        follower = self._jobs.get(name)
        if follower is None or follower.feed.closed:
            follower = self._jobs[name] = Follower(lambda: FollowedJob(self._store(), name), self._workers, self._times)
        return follower

    async def followed(self, name: str) -> Follower:
        """Who follows a job, after a look.

        Raises:
            RefusedError, WarmbandError: the database is away, or there is no such job.
        """
        follower = self.job(name)
        known = follower.followed is not None
        try:
            await follower.fresh()
        except WarmbandError:
            if not (known and follower.feed.closed):
                raise
            follower = self.job(name)  # The one that was deleted may have left its name to another.
            await follower.fresh()
        return follower

    @property
    def jobs(self) -> Follower:
        """Who follows the list of jobs."""
        if self._list is None:
            self._list = Follower(lambda: JobList(self._store()), self._workers, self._times)
        return self._list

    @property
    def listeners(self) -> int:
        """Clients that follow events."""
        followers = (*self._jobs.values(), *([self._list] if self._list else []))
        return sum(follower.listeners for follower in followers)

    def forget(self, name: str) -> None:
        """Has a job looked at at once, since something was done to it."""
        if name in self._jobs:
            self._jobs[name]._looked = -1e9

    def close(self) -> None:
        """Ends all streams, and takes no new ones."""
        self.closed = True
        for follower in (*self._jobs.values(), *([self._list] if self._list else [])):
            follower.stop()

    def _sweep(self) -> None:
        over = [name for name, follower in self._jobs.items() if follower.idle or follower.feed.closed]
        for name in over:
            self._jobs.pop(name).stop()
