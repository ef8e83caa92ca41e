"""The gangs of one job on Ray: started one after another as they fit and are needed, heard through one mailbox."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Sequence
from enum import Enum

from ray.train import ScalingConfig

from trainers.assignment import Assignment, Event, GangEnded, GangLost, GangUp, Order
from trainers.cluster import Cluster
from trainers.errors import GangError
from trainers.gang import END_SECONDS, Gang, Program
from trainers.mailbox import MailboxHandle
from trainers.room import Room

logger = logging.getLogger(__name__)

START_ATTEMPTS = 3


class _Phase(Enum):
    STARTING = "starting"
    UP = "up"
    LOST = "lost"


class RayGangs:
    """Starts and ends gangs of one size; hands assignments out and events in.

    The first gang is started at once and alone: on few cores, gangs that start together all come up late. Another
    follows when the one before is up, while there is more work left than its start would take.

    Args:
        name: prefix of the gangs' names.
        program: what their workers run.
        scaling: workers of a gang, and what each needs.
        notify: is told, once, what the user should know, such as that fewer gangs fit than were asked for.
        eager: start gangs as soon as they fit, without weighing the work that is left.
        on: the cluster they run on. Where it ends with the job, gangs that are still starting are left to that.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        scaling: ScalingConfig,
        *,
        notify: Callable[[str], None] = logger.info,
        eager: bool = False,
        on: Cluster | None = None,
    ) -> None:
        self._name = name
        self._program = program
        self._scaling = scaling
        self._notify = notify
        self._eager = eager
        self._cluster = on or Cluster(private=False)
        self._mailbox = MailboxHandle.open()
        self._gangs: dict[str, Gang] = {}
        self._phase: dict[str, _Phase] = {}
        self._incarnation: dict[str, str] = {}
        self._orders: list[tuple[str, str, Order]] = []
        self._started = 0
        self._started_at: dict[str, float] = {}
        self._start_seconds = 0.0
        self._failed_starts = 0
        self._room = Room(scaling, notify)
        self._closed = False

    @property
    def workers(self) -> int:
        """Workers in each gang."""
        return int(self._scaling.num_workers)  # type: ignore[arg-type]  # a range is refused by Trainer

    @property
    def starting(self) -> int:
        """Gangs that are on their way: starting, or coming back after they lost their workers."""
        return sum(phase is not _Phase.UP for phase in self._phase.values())

    def held_since(self, gang: str) -> float:
        """When the gang's resources were first held, in seconds since the epoch."""
        return self._gangs[gang].held_since or self._started_at[gang]

    def want(self, count: int, seconds_left: float | None) -> None:
        """Starts a gang if fewer than `count` are there and it is worth its start.

        Args:
            count: how many gangs the work could keep busy at present.
            seconds_left: gang-seconds of work left, as far as known; None before anything was measured.

        Raises:
            ResourcesError: not even one gang fits the cluster.
            GangError: gangs cannot start.
        """
        up = sum(phase is not _Phase.STARTING for phase in self._phase.values())
        if len(self._gangs) >= count or len(self._gangs) > up:
            return
        if up and not self._eager and (seconds_left is None or seconds_left / up < self._start_seconds):
            return
        if self._room.for_another(count, len(self._gangs)):
            self._start()

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Hands an assignment to a gang that is up and free, with the next call of `events`."""
        self._orders.append((gang, self._incarnation[gang], assignment))

    def events(self, timeout: float) -> Sequence[Event]:
        """What has happened since the last call; waits up to `timeout` seconds for something."""
        if _Phase.STARTING in self._phase.values():
            timeout = min(timeout, 0.2)
            for name, phase in self._phase.items():
                if phase is _Phase.STARTING:
                    self._gangs[name].observe()
        orders, self._orders = self._orders, []
        return [event for event in self._mailbox.exchange(orders, timeout) if self._take_note(event)]

    def recycle(self, gang: str, reason: str) -> None:
        """Takes a gang's workers away because it does not answer; it says `GangLost` and comes back, or ends."""
        logger.warning("gang %s is ended by force: %s", gang, reason)
        self._gangs[gang].end_by_force()

    def close(self, *, now: bool = False) -> None:
        """Ends every gang and releases all they held: with a goodbye if they are up, by force if still starting.

        `now`, or Ctrl-C while it waits, leaves none of them the time to finish what it is serving.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._end_all(now)
        except KeyboardInterrupt:
            self._end_all(now=True)
            raise
        finally:
            self._gangs.clear()
            self._phase.clear()
            self._mailbox.close()

    def _end_all(self, now: bool) -> None:
        waited = [gang for gang in self._gangs.values() if not gang.ended]
        hurried = [gang for gang in waited if now or self._phase[gang.name] is not _Phase.UP]
        for gang in waited:
            if gang in hurried and self._cluster.private:
                gang.kill()
            else:
                gang.goodbye()
        deadline = time.monotonic() + END_SECONDS
        while waited := [gang for gang in waited if not gang.join(0.02)]:
            late = time.monotonic() > deadline
            for gang in waited:
                if late or (gang in hurried and not self._cluster.private):
                    gang.end_by_force()
            if time.monotonic() > deadline + END_SECONDS:
                names = ", ".join(gang.name for gang in waited)
                self._notify(f"warning: waited {2 * END_SECONDS:.0f} s for gangs to end and left them: {names}")
                break

    def _start(self) -> None:
        name = f"{self._name}-gang{self._started}-{uuid.uuid4().hex[:4]}"
        self._started += 1
        gang = Gang(name, self._program, self._scaling, self._mailbox)
        self._gangs[name], self._phase[name] = gang, _Phase.STARTING
        self._started_at[name] = time.time()
        gang.start()

    def _take_note(self, event: Event) -> bool:
        """Follows a gang's life; returns whether the event is news to the caller."""
        if event.gang not in self._gangs:
            return False
        if isinstance(event, GangUp):
            gang = self._gangs[event.gang]
            gang.placement_group = event.placement_group
            if self._phase[event.gang] is _Phase.STARTING:
                self._start_seconds = time.time() - self._started_at[event.gang]
                self._failed_starts = 0
            self._phase[event.gang] = _Phase.UP
            self._incarnation[event.gang] = event.incarnation
        elif isinstance(event, GangLost):
            self._phase[event.gang] = _Phase.LOST
        elif isinstance(event, GangEnded):
            self._bury(event)
        return True

    def _bury(self, event: GangEnded) -> None:
        gang = self._gangs.pop(event.gang)
        if self._phase.pop(event.gang) is _Phase.STARTING:
            self._failed_starts += 1
        if event.final:
            deadline = time.monotonic() + END_SECONDS
            while not gang.join(0.1) and time.monotonic() < deadline:
                gang.end_by_force()  # Peers of the rank that failed may wait for it in a collective.
            where = f"\nThe worker's output: {event.logs}" if event.logs else ""
            raise GangError(f"gang {event.gang} cannot serve: {event.error}\n{event.traceback}".rstrip() + where)
        if self._failed_starts >= START_ATTEMPTS:
            raise GangError(
                f"gangs failed to start {self._failed_starts} times in a row, the last with: {event.error}\n"
                f"{event.traceback}".rstrip()
            )
