"""A job's gangs on Ray: started one by one as they fit and are needed, with one mailbox for all."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.train import ScalingConfig

from trainers import steady
from trainers.cluster import Cluster, Notices, head
from trainers.errors import GangError
from trainers.gangs.capacity import Room
from trainers.gangs.departures import Departures
from trainers.gangs.gang import END_SECONDS, Gang
from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.messages import Assignment, Event, GangEnded, GangLost, GangPlaced, GangUp, Halt, Served, one_line
from trainers.gangs.planning import Programs, Release, Start, next_change
from trainers.gangs.program import Program
from trainers.gangs.scaling import range_of, resources_per_worker
from trainers.gangs.sharing import Claim, Held, Neighbours
from trainers.process import whole

logger = logging.getLogger(__name__)

START_ATTEMPTS = 3


class _Phase(Enum):
    STARTING = "starting"
    UP = "up"
    LOST = "lost"


class RayGangs:
    """Starts and ends gangs; hands assignments out and events in.

    The first gang is started at once and alone: on few cores, gangs that start together all come up late. Another
    follows when the one before is up, while there is more work left than its start would take. Gangs of every size
    stay while there is room; `next_change` says which goes where there is none.

    Args:
        name: prefix of the gangs' names.
        program: makes what the workers of a gang of so many run; called again for a size that had no gang for a while.
        scaling: what each worker needs; how many there are is for `want` to say.
        notify: is told, once, what the user should know, such as that fewer gangs fit than were asked for.
        priority: the job's weight where it shares the cluster with others.
        patient: wait for room as long as it takes.
        eager: start gangs as soon as they fit, without weighing the work that is left.
        on: the cluster they run on. Where it ends with the job, gangs that are still starting are left to that.
    """

    def __init__(
        self,
        name: str,
        program: Callable[[int], Program],
        scaling: ScalingConfig,
        *,
        notify: Callable[[str], None] = logger.info,
        priority: int = 1,
        patient: bool = False,
        eager: bool = False,
        on: Cluster | None = None,
    ) -> None:
        self._name = name
        self._programs = Programs(program)
        self._scaling = scaling
        self._notify = notify
        self._patient = patient
        self._eager = eager
        self._priority = priority
        self._cluster = on or Cluster(private=False)
        self._mailbox = MailboxHandle.open(name)
        # A private cluster has this job alone.
        self._notices = None if self._cluster.private else Notices()
        self._neighbours = (
            Neighbours(self._mailbox, self._claim(), self._notices, self._notify) if self._notices else None
        )
        self._wanted: dict[int, int] = {}
        self._gangs: dict[str, Gang] = {}
        self._idle: dict[str, None] = {}
        """Gangs that are up and free, the least recently used first."""
        self._made: list[Gang] = []
        """All whose runs may not be over yet, what else is known of them or not."""
        self._leaving = Departures(self._notify)
        self._phase: dict[str, _Phase] = {}
        self._incarnation: dict[str, str] = {}
        self._serves: dict[str, int] = {}
        """For trials of how many workers each gang is; one that is elastic may have fewer."""
        self._nodes: dict[str, frozenset[str]] = {}
        """The nodes that the workers of each gang are on."""
        self._halted: set[str] = set()
        """Gangs that end when they have served, since a node of theirs is drained."""
        self._orders: list[tuple[str, str, Assignment | Halt]] = []
        self._started = 0
        self._started_at: dict[str, float] = {}
        self._start_seconds = 0.0
        self._failed_starts = 0
        self._lost_mailboxes = 0
        """Since something was served."""
        self._rooms: dict[int, Room] = {}
        self._closed = False

    def _claim(self) -> Claim:
        """The job's claim, which others read from its beginning to its end."""
        least, most = range_of(self._scaling)
        return Claim(
            name=self._mailbox.name,
            priority=self._priority,
            need=resources_per_worker(self._scaling),
            placement=str(self._scaling.placement_strategy),
            spare=most - least,
            driver=ray.get_runtime_context().get_job_id(),
        )

    @property
    def starting(self) -> int:
        """Gangs that are on their way: starting, or coming back after they lost their workers."""
        return sum(phase is not _Phase.UP for phase in self._phase.values())

    def held_since(self, gang: str) -> float:
        """When the gang's resources were first held, in seconds since the epoch."""
        return self._gangs[gang].held_since or self._started_at[gang]

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        """Starts a gang if one is missing and worth its start, or gives an idle one back for it; see `Gangs.want`."""
        if self._leaving.see_off():
            for room in self._rooms.values():
                room.look_now()
        sizes = self._shared(sizes)
        if self._leaving or _Phase.STARTING in self._phase.values():
            return ()
        up = len(self._gangs)
        worth_another = self._eager or (seconds_left is not None and seconds_left / max(1, up) >= self._start_seconds)

        sizes_held = self._serves

        def fits(workers: int, returned: Sequence[str]) -> bool:
            # Idle gangs of other sizes are no reason to wait: they go as soon as that helps.
            waited_for = sum(size == workers or name not in self._idle for name, size in sizes_held.items())
            groups = [self._gangs[name].placement_group for name in returned]
            return self._room(self._least(workers)).for_another(self._wanted[workers], waited_for, groups)

        match next_change(sizes, sizes_held, list(self._idle), worth_another=worth_another, fits=fits):
            case Start(workers=workers):
                self._start(workers)
            case Release(gang=name):
                self._release(name)
                return (name,)
        return ()

    def give_back(self) -> Collection[str]:
        """Ends idle gangs that are of no use any more, or that others have a right to; see `Gangs.give_back`."""
        if self._neighbours is not None and self._neighbours.short:
            keeps = self._neighbours.keeps(lambda gang: gang not in self._idle)
            gone = [name for name in self._idle if name not in keeps]
        elif len({*self._serves.values(), *self._wanted}) > 1:
            return ()  # Of several sizes, one that nothing waits for may be what the next trial needs.
        else:
            surplus = len(self._serves) - sum(self._wanted.values())
            gone = list(self._idle)[: max(0, surplus)]
        for name in gone:
            self._release(name)
        return gone

    def _shared(self, sizes: Mapping[int, int]) -> dict[int, int]:
        """The part of the wanted gangs that the job may hold or start now, beside the other jobs on the cluster."""
        self._wanted = dict(sizes)
        if self._neighbours is None:
            return self._wanted
        # A gang that is elastic has a right to as many workers as it cannot do without.
        wants = [self._least(workers) for workers, count in sizes.items() for _ in range(count)]
        share = self._neighbours.share(wants, self._holds())
        if share is None:
            return self._wanted
        if share.waits_for:
            for room in self._rooms.values():
                room.wait_on()
        elif not share.gangs:
            return self._wanted  # No job stands in its way: it waits for room as if it were alone.
        sized = {self._least(workers): workers for workers in sizes}
        allowed = Counter(self._serves[gang] for gang in share.keeps)
        allowed.update(sized[least] for least in share.starts)
        return {workers: allowed[workers] for workers in sizes if allowed[workers]}

    def _holds(self) -> list[Held]:
        """The job's gangs and resources; a gang that was told to end counts as none that it wants."""
        sizes = {name: self._least(workers) for name, workers in self._serves.items()}
        return [
            Held(gang=gang.name, size=sizes.get(gang.name, 0), workers=gang.workers, group=gang.placement_group)
            for gang in (*self._gangs.values(), *self._leaving)
        ]

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Hands an assignment to a gang that is up and free, with the next call of `events`."""
        self._idle.pop(gang, None)
        self._orders.append((gang, self._incarnation[gang], assignment))

    def halt(self, gang: str) -> None:
        """See `Gangs.halt`; it goes out with the next call of `events`."""
        if gang in self._incarnation:
            self._orders.append((gang, self._incarnation[gang], Halt()))

    def events(self, timeout: float) -> Sequence[Event]:
        """The events since the last call; waits up to `timeout` seconds for one."""
        if _Phase.STARTING in self._phase.values():
            timeout = min(timeout, 0.2)
            for name, phase in self._phase.items():
                if phase is _Phase.STARTING:
                    self._gangs[name].observe()
        orders, self._orders = self._orders, []
        try:
            messages = self._mailbox.exchange(orders, timeout)
        except (RayActorError, GetTimeoutError) as error:
            messages = self._begin_anew(error)
        news = [self._told(event) for event in messages if self._take_note(event)]
        return [*news, *self._leave_drained()]

    def _begin_anew(self, error: RayError) -> Sequence[Event]:
        """Takes another mailbox for one that has died or does not answer: gangs know but the one that they began with.

        Returns:
            The ends of all gangs, which begin anew as well.

        Raises:
            GangError: the cluster is gone, or the mailbox dies again and again.
        """
        reason = one_line(error)
        if not head.is_there():
            raise GangError(f"the Ray cluster is gone ({type(error).__name__}: {reason}). {head.RESUME}") from error
        self._lost_mailboxes += 1
        if self._lost_mailboxes >= START_ATTEMPTS:
            raise GangError(
                f"the actor through which driver and gangs talk was lost {self._lost_mailboxes} times in a row, which "
                f"happens where memory is short; the last time: {reason} {head.RESUME}"
            ) from error
        self._notify(
            "the actor through which driver and gangs talk was lost: gangs start again, and trials go on from their "
            f"last rungs ({reason})"
        )
        self._mailbox.close()
        self._mailbox = MailboxHandle.open(self._name)
        if self._notices:
            self._neighbours = Neighbours(self._mailbox, self._claim(), self._notices, self._notify)
        for name, gang in self._gangs.items():
            # Those that are asked for nothing end by themselves, and what others train cannot be handed in any more.
            busy = self._phase[name] is _Phase.UP and name not in self._idle
            self._leaving.add(gang, 0.0 if busy else max(END_SECONDS, gang.end_seconds))
            self._phase[name] = _Phase.LOST
        return [GangEnded(gang=name, error="its mailbox was lost") for name in self._gangs]

    def _told(self, event: Event) -> Event:
        """An event with what only the driver knows of an elastic gang."""
        least, most = range_of(self._scaling)
        if least == most or event.gang not in self._gangs:
            return event
        if isinstance(event, GangUp):
            return replace(event, serves=self._serves[event.gang])
        if isinstance(event, Served) and event.segment is not None:
            # By the number of workers, so that a trial's whole life adds up.
            units = {str(self._gangs[event.gang].workers): len(event.segment.reports)}
            details = {**event.segment.details, "units_by_workers": units}
            return replace(event, segment=replace(event.segment, details=details))
        return event

    def _leave_drained(self) -> Iterator[GangEnded]:
        """Ends the gangs that have workers on nodes that are drained, each as soon as it serves nothing.

        What one serves ends with its next report.
        """
        drained = self._notices.nodes if self._notices else frozenset()
        for name in [name for name, nodes in self._nodes.items() if nodes & drained]:
            if name in self._idle:
                self._release(name)
                yield GangEnded(gang=name, error="a node of its workers is drained")
            elif name not in self._halted and self._phase[name] is _Phase.UP:
                self._halted.add(name)
                self._notify(f"a node of {name} is being taken away: its trial goes on elsewhere from its next report")
                self.halt(name)

    def recycle(self, gang: str, reason: str) -> None:
        """Takes a gang's workers away because it does not answer; it says `GangLost` and comes back, or ends."""
        logger.warning("gang %s is ended by force: %s", gang, reason)
        self._gangs[gang].end_by_force()

    def close(self, *, now: bool = False) -> None:
        """Ends every gang and releases all they held: with a goodbye if they are up, by force if still starting.

        `now`, or Ctrl-C while it waits, leaves none of them the time to finish what it is serving; `KeyboardInterrupt`
        comes when they have ended. Those that do not are left, and their mailbox, which ends them as soon as it can.
        """
        with whole() as interrupted:
            if self._closed:
                return
            self._closed = True
            try:
                self._leaving.end_all(
                    self._made,
                    lambda gang: self._phase.get(gang.name, _Phase.UP) is _Phase.UP,
                    lambda: now or interrupted(),
                    private=self._cluster.private,
                )
            finally:
                if self._notices:
                    self._notices.close()
                if left := [gang.thread for gang in self._made if not gang.ended]:
                    self._cluster.left.extend(left)
                else:
                    self._mailbox.close()
                self._gangs.clear()
                self._phase.clear()

    def _room(self, workers: int) -> Room:
        if workers not in self._rooms:
            scaling = replace(self._scaling, num_workers=workers)
            self._rooms[workers] = Room(scaling, self._notify, self._notices, patient=self._patient)
        return self._rooms[workers]

    def _least(self, workers: int) -> int:
        """How many workers a gang for trials of so many has at least."""
        least, most = range_of(self._scaling)
        return least if workers == most else workers

    def _start(self, serves: int) -> None:
        """Starts a gang with as many workers as there is room for, `serves` at most; for the least of them there is."""
        sizes = range(serves, self._least(serves), -1)
        workers = next((size for size in sizes if self._room(size).fits), self._least(serves))
        # Those that are over hold what they ran.
        self._made = [made for made in self._made if not made.ended]
        program = self._programs.of(workers, {made.workers for made in self._made})
        name = f"{self._name}-gang{self._started}-{uuid.uuid4().hex[:4]}"
        self._started += 1
        scaling = replace(self._scaling, num_workers=workers)
        self._serves[name] = serves
        if workers < serves:
            self._notify(
                f"{name} starts with {workers} of {serves} workers, for want of room; what depends on the shards, such "
                "as the order of sums and batches, is not what it would be with all of them"
            )
        gang = Gang(name, program, scaling, self._mailbox, self._cluster.reach, self._cluster.runtime_env)
        self._gangs[name], self._phase[name] = gang, _Phase.STARTING
        self._started_at[name] = steady.now()
        self._made.append(gang)
        gang.start()

    def _release(self, name: str) -> None:
        """Tells an idle gang to end; nothing is heard of it any more."""
        gang = self._gangs.pop(name)
        del self._phase[name], self._idle[name], self._nodes[name], self._serves[name]
        self._halted.discard(name)
        self._leaving.add(gang)

    def _take_note(self, event: Event) -> bool:
        """Follows a gang's life; returns whether the event is news to the caller."""
        if event.gang not in self._gangs:
            return False
        if isinstance(event, GangPlaced):
            self._gangs[event.gang].placed(event.placement_group)
        elif isinstance(event, GangUp):
            if self._phase[event.gang] is _Phase.STARTING:
                self._start_seconds = steady.now() - self._started_at[event.gang]
                self._failed_starts = 0
            self._phase[event.gang] = _Phase.UP
            self._idle[event.gang] = None
            self._incarnation[event.gang] = event.incarnation
            self._nodes[event.gang] = frozenset(event.nodes)
            self._halted.discard(event.gang)
        elif isinstance(event, Served):
            self._idle[event.gang] = None
            self._lost_mailboxes = 0
        elif isinstance(event, GangLost):
            self._idle.pop(event.gang, None)
            self._phase[event.gang] = _Phase.LOST
        elif isinstance(event, GangEnded):
            self._bury(event)
        return not isinstance(event, GangPlaced)

    def _bury(self, event: GangEnded) -> None:
        gang = self._gangs.pop(event.gang)
        gang.release()
        self._idle.pop(event.gang, None)
        self._nodes.pop(event.gang, None)
        del self._serves[event.gang]
        if self._phase.pop(event.gang) is _Phase.STARTING:
            self._failed_starts += 1
        if event.final:
            self._leaving.force(gang)  # Peers of the rank that failed may wait for it in a collective.
            where = f"\nThe worker's output: {event.logs}" if event.logs else ""
            raise GangError(f"gang {event.gang} cannot serve: {event.error}\n{event.traceback}".rstrip() + where)
        if not gang.ended and gang not in self._leaving:
            self._leaving.add(gang, 0.0)  # A worker said so; its peers wait for it, and would be started again.
        if self._failed_starts >= START_ATTEMPTS:
            raise GangError(
                f"gangs failed to start {self._failed_starts} times in a row, the last with: {event.error}\n"
                f"{event.traceback}".rstrip()
            )
