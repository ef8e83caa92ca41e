"""Drivers of jobs that are simulated: what befalls one, at which moment, and threads that take turns."""

from __future__ import annotations

import math
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpo.jobs.files.checkpoints import Checkpoints
from hpo.record.store import JobWriter
from hpo.search.simulated_gangs import SimulatedGangs
from trainers import XGBoostTrainer, checkpoint
from trainers.checkpoint import Manifest, trial_of
from trainers.errors import DivergedError, LeaseError, ResourcesError, StorageError, WarmbandError
from trainers.gangs.messages import Assignment, Event, Segment, Served

if TYPE_CHECKING:
    from tests.support.job_life import World

METRIC = "validation:auc"
WORKERS = 2
MODEL = b"a model: "
NO_ROOM = "waited 120 s for room for a gang of 2 workers"


class KilledError(BaseException):
    """The driver's process is gone: nothing of it runs any more."""


Moment = tuple[int, int]
"""When something befalls a driver: behind the event of that number, 1 the first and 0 its start, so many calls on."""

Act = Callable[[], None]


@dataclass(kw_only=True)
class Disturbance:
    """Faults of a driver, and the turns of its threads."""

    acts: dict[Moment, Act] = field(default_factory=dict)
    losses: frozenset[int] = frozenset()
    spoilt: frozenset[int] = frozenset()
    """Numbers of the assignments that find their checkpoint changed."""
    no_head: bool = False
    no_room: bool = False
    written_every: int = 2
    """Events between one batch of its rows and the next; files are removed then, too."""


class Driver:
    """One driver: what befalls it and when, and what can be said of it from outside.

    Its main thread calls `point` wherever it is about to touch the record, a file or a gang: those are the moments at
    which a signal comes or it dies. Its other threads work in turns, so that a sequence goes the same way every time.
    """

    def __init__(self, world: World, disturbance: Disturbance) -> None:
        self.world, self.disturbance = world, disturbance
        self.writer: MortalWriter | None = None
        self.files: TurnByTurn | None = None
        self.gangs: Gangs | None = None
        self.events = self.points = 0
        self.due: list[tuple[int, Act]] = []
        self.dead = self.acting = False
        self.asked_at: int | None = None
        """How many events it had heard when it was asked to stop."""
        self.billed = 0.0
        """Worker-seconds of gangs that the record knew of when it was last heard of."""
        self.began: float | None = None
        self.heard_at = -math.inf

    def event(self, number: int) -> None:
        """It starts, with number 0, or is about to hear its next event."""
        self.events = number
        if number and number % self.disturbance.written_every == 0:
            self.turn()
        self.due += [(self.points + inside, act) for (at, inside), act in self.disturbance.acts.items() if at == number]
        self._act()

    def point(self) -> None:
        """It is about to do something that others see."""
        if threading.current_thread() is not threading.main_thread() or self.world.driver is not self:
            return
        if not (self.dead or self.acting or (self.writer and self.writer.whole)):
            self.points += 1
            self._act()

    def _act(self) -> None:
        while ready := [entry for entry in self.due if entry[0] <= self.points]:
            self.due.remove(ready[0])
            self.acting = True
            try:
                ready[0][1]()
            finally:
                self.acting = False

    def turn(self) -> None:
        """Its other threads do all that there is for them to do."""
        if self.writer and not self.world.database_away and not self.writer.lost_lease:
            with suppress(WarmbandError):
                self.writer.flush()
        if self.files:
            self.files.turn()

    def heard_of(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """The record has these bills, and a heartbeat."""
        self.heard_at = self.world.now
        if self.gangs:
            self.gangs.known |= {row["gang"] for row in rows}
            self.billed = self.gangs.held

    @property
    def drove(self) -> float:
        """Seconds for which it drove the job, as far as it was heard of."""
        return 0.0 if self.began is None else max(0.0, self.heard_at - self.began)

    @property
    def left_gangs(self) -> bool:
        """Whether it ended, and was not killed, without its gangs being given back."""
        return self.gangs is not None and not self.dead and math.isinf(self.gangs.closed_at)

    def asked(self) -> None:
        """Somebody asked it to stop."""
        if self.asked_at is None:
            self.asked_at = self.events


class MortalWriter(JobWriter):
    """A writer whose process can be frozen, or die with what it has not written; it writes when it is told to."""

    def __init__(self, driver: Driver, *arguments: Any) -> None:
        self.driver, self.frozen, self.whole = driver, threading.Lock(), False
        super().__init__(*arguments)

    def _exchange(self, batch: Any) -> None:
        with self.frozen:
            before = self._beaten
            super()._exchange(batch)
            if self._beaten == before:
                return
            if self.driver.world.lease() != self._lease:
                self.driver.world.faults.append("rows were written without the lease")
            self.driver.heard_of(batch.rows.get("ledger", {}).values())

    @contextmanager
    def _queueing(self, rows: int, *, bounded: bool = False) -> Iterator[Any]:
        self.driver.point()
        with super()._queueing(rows, bounded=bounded) as queue:
            yield queue

    @contextmanager
    def at_once(self) -> Iterator[None]:
        self.driver.point()
        self.driver.began = self.driver.world.now if self.driver.began is None else self.driver.began
        self.whole = True
        try:
            with super().at_once():
                yield
        finally:
            self.whole = False

    def flush(self, timeout: float = 30.0) -> None:
        self.driver.point()
        super().flush(0.01 if self.driver.world.database_away else timeout)

    def close(self, *arguments: Any) -> None:
        self.driver.point()
        self.driver.world.database_away = False  # At the latest: a job that has ended waits for it in real seconds.
        super().close(*arguments)

    @property
    def lease(self) -> str:
        """The lease of the driver."""
        return self._lease

    def die(self) -> None:
        """Its process is gone, with what was not written."""
        with self._changed:
            self._abandoned, self._taken = True, LeaseError("killed")
            self._changed.notify_all()
        self._wake.set()
        self._thread.join(10.0)


class TurnByTurn(Checkpoints):
    """Removes files when it is its turn."""

    def __init__(self, driver: Driver, *arguments: Any, **named: Any) -> None:
        self.driver, driver.files = driver, self
        self.cv = threading.Condition()
        self.free = self.over = self.may = False
        self.put = self.done = 0
        self.removed: bool | None = None
        super().__init__(*arguments, **named)

    def turn(self) -> None:
        """Remove released files, or leave them until the record is written."""
        with self.cv:
            while self.put > self.done and not self.over:
                self.may, self.removed = True, None
                self.cv.notify_all()
                assert self.cv.wait_for(lambda: self.over or self.removed is not None, 60.0), "files are not removed"
                if self.removed is False:
                    return

    def recorded(self) -> None:
        self.driver.point()
        self.put += len(self._decided)
        super().recorded()

    def close(self, *arguments: Any, **named: Any) -> dict[str, int]:
        self.driver.point()
        self.driver.world.database_away = False
        self._set_free()
        return super().close(*arguments, **named)

    def leave(self) -> None:
        self._set_free()
        super().leave()

    def _set_free(self) -> None:
        with self.cv:
            self.free = True
            self.cv.notify_all()

    def _remove(self, batch: Any) -> bool:
        with self.cv:
            self.cv.wait_for(lambda: self.free or self.may)
            self.may = False
        removed = super()._remove(batch)
        with self.cv:
            self.done += len(batch) if removed else 0
            self.removed = removed
            self.cv.notify_all()
        return removed

    def _attempt(self, act: Any, uri: str) -> None:
        world = self.driver.world
        lease = self.driver.writer and self.driver.writer.lease
        if getattr(act, "func", act) in (checkpoint.remove, checkpoint.remove_trial) and (
            self.driver.dead or world.lease() != lease
        ):
            world.faults.append(f"{uri} was removed without the lease")
        super()._attempt(act, uri)

    def _run_while_held(self) -> None:
        super()._run_while_held()
        with self.cv:
            self.over = True
            self.cv.notify_all()


def saved(uri: str, raw: bytes, workers: int) -> Manifest:
    """A checkpoint, to which each of several workers writes its part."""
    if workers < 2:
        return checkpoint.save(uri, raw)
    parts = [raw[start::workers] for start in range(workers)]
    return checkpoint.seal(uri, [checkpoint.save_part(uri, f"part-{n}", part) for n, part in enumerate(parts)])


NAMES_OF_OTHERS = ("notes.txt", "mine", "manifest.json.bak", "rank-0.old-1", "12.ubj", "best.ubj")
"""Names of files and folders that somebody else puts among those of a job."""


def model_in(uri: str, manifest: Manifest) -> bytes:
    """Check a checkpoint's files against its manifest; return their content."""
    held = {file.name: Path(place).read_bytes() for place, file in manifest.located(uri).items()}
    assert held
    assert not any(file.flaw(held[file.name]) for file in manifest.files), uri
    parts = [held[name] for name in manifest.parts] if manifest.is_folder else [*held.values()]
    assert not manifest.is_folder or not set(os.listdir(uri)) - {*held, *NAMES_OF_OTHERS}, "there is more"
    return bytes(part[at] for at in range(len(parts[0])) for part in parts if at < len(part))


def value_of(assignment: Assignment, step: int) -> float:
    """A trial's objective, of its configuration and step alone; some fail, some diverge, also right behind a rung."""
    chance = random.Random(f"{assignment.seed}/{step}").random()
    if chance < 0.004:
        raise ValueError("a trial's own error")
    if step in (2, 4) and random.Random(f"{assignment.seed} diverges").random() < 0.25:
        raise DivergedError("the loss is not finite")
    rising = float(assignment.hyperparameters.get("eta", 0.3)) * (1 - 0.8**step)
    return math.nan if chance < 0.013 else rising + chance / 5


class Gangs(SimulatedGangs):
    """Writes models as files, on the clock of a world."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(
            value_of,
            metric=METRIC,
            start_seconds=5.0,
            unit_seconds=lambda assignment: 0.1 + random.Random(assignment.trial_id).random(),
            losses=driver.disturbance.losses,
        )
        self.driver, self.world, driver.gangs = driver, driver.world, self
        self.now, self.gangs, self.heard = self.world.now, self.world.gangs, 0
        self.known: set[str] = set()
        """Gangs of which the record has a bill."""
        self.halted: set[str] = set()
        self.spoilt: set[str] = set()
        """Trials that are being served, and whose checkpoint is not what was written."""
        self.closed_at = math.inf

    @property
    def held(self) -> float:
        """Worker-seconds for which the gangs that the record knows were held until now, or until they were closed."""
        until = min(self.closed_at, max(self.now, self.world.now))  # Others may have driven meanwhile.
        return sum((until - self._started[gang]) * WORKERS for gang in self.known if gang in self._started)

    def clock(self) -> float:
        self.world.now = self.now
        return self.now

    def want(self, sizes: Any, seconds_left: float | None) -> Any:
        self.driver.point()
        if self.driver.disturbance.no_room:
            raise ResourcesError(NO_ROOM)
        gone = super().want(sizes, seconds_left)
        self.world.gangs = max(self.world.gangs, self.gangs)
        return gone

    def assign(self, gang: str, assignment: Assignment) -> None:
        self.driver.point()
        asked = self.driver.asked_at
        assert asked is None or self.heard <= asked, "work was handed out behind a stop"
        if assignment.checkpoint is not None and not self.world.aside.exists():
            wrote = trial_of(assignment.checkpoint).encode()  # The trial itself, or the one that it was forked from.
            assert model_in(assignment.checkpoint, assignment.manifest) == MODEL + wrote
        if assignment.start and len(self.served) in self.driver.disturbance.spoilt:
            self.spoilt.add(assignment.trial_id)
            self.world.start_over.add(assignment.trial_id)
        again = assignment.trial_id in self.world.start_over
        assert again or assignment.start >= self.world.stands_at(assignment.trial_id), "what is known is trained again"
        self.halted.discard(gang)
        super().assign(gang, assignment)

    def halt(self, gang: str) -> None:
        self.halted.add(gang)
        super().halt(gang)

    def _serve(self, gang: str, assignment: Assignment, seconds: float) -> Served:
        if assignment.trial_id not in self.spoilt:
            return super()._serve(gang, assignment, seconds)
        return Served(gang=gang, trial_id=assignment.trial_id, error="it has other bytes", spoilt=True)

    def close(self, *, now: bool = False) -> None:
        self.driver.point()
        self.closed_at = self.world.now

    def events(self, timeout: float) -> Sequence[Event]:
        self.driver.event(self.heard + 1)
        self.heard += 1
        before = self.now = max(self.now, self.world.now)  # Others may have driven meanwhile.
        [event] = super().events(timeout)
        self.now = self.world.now = max(before, self.now)
        if isinstance(event, Served):
            self.spoilt.discard(event.trial_id)
        if isinstance(event, Served) and event.segment is not None:
            event = self._saved(event, event.segment)
        self.driver.point()
        return [event]

    def _saved(self, event: Served, segment: Segment) -> Served:
        """As a worker does: it waits while the storage is away, and gives up after ten minutes or when it is halted."""
        raw = MODEL + event.trial_id.encode()
        since = self.now
        while True:
            try:
                manifest = saved(segment.checkpoint, raw, int(random.Random(event.trial_id).random() * 3))
            except StorageError as error:
                self.now = self.world.now = max(self.now, self.world.now) + 30.0  # Others may have driven meanwhile.
                if event.gang in self.halted or self.now - since >= 600.0:
                    return Served(gang=event.gang, trial_id=event.trial_id, error=str(error), away=True)
                self.world.asked_in_vain()
            else:
                return replace(event, segment=replace(segment, manifest=manifest))


class Trainer(XGBoostTrainer):
    """Trains on gangs that are simulated, or on none."""

    driver: Driver

    @contextmanager
    def gangs(self, name: str, channels: Any, **options: Any) -> Iterator[Any]:
        self.driver.point()
        if self.driver.disturbance.no_head:
            raise ResourcesError("nothing answers at 127.0.0.1:6399")
        yield Gangs(self.driver)
