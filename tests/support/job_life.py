"""A job's whole life over many drivers: the real record and real files, gangs and clocks that are simulated."""

from __future__ import annotations

import math
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from ray.train import ScalingConfig
from sqlalchemy.exc import OperationalError

from hpo import ContinuousParameter, checkpoints, database, store, store_writer
from hpo.completion import TuningJobCompletionCriteriaConfig
from hpo.hyperband import Plan
from hpo.interrupt import Interrupts
from hpo.job import Ended, Job
from hpo.job_folder import FOLDER_ID
from hpo.limits import Limits
from hpo.progress import Goal, Progress
from hpo.search import Search
from hpo.simulation import SimulatedGangs
from hpo.store import JobRow, JobWriter, LedgerRow, Store, TrialRow
from hpo.strategies import make_strategy
from trainers import XGBoostTrainer, patient_storage, storage
from trainers.assignment import Assignment, Event, GangUp, Segment, Served
from trainers.errors import LeaseError, ResourcesError, StorageError, WarmbandError

METRIC = "validation:auc"
WORKERS = 2
RANGES = {"eta": ContinuousParameter(0.0, 1.0)}
MODEL = b"a model: "
LOST = store_writer.LOST_AFTER + 1.0
SPEC = {
    "objective_metric_name": METRIC,
    "objective_type": "Maximize",
    "objective_value": "last",
    "estimator": {"hyperparameters": {}},
    "hyperparameter_ranges": {},
    "random_seed": 7,
}


class KilledError(BaseException):
    """The driver's process is gone: nothing of it runs any more."""


class MortalWriter(JobWriter):
    """A writer whose process can be frozen, or die with what it has not written."""

    def __init__(self, *arguments: Any) -> None:
        self.frozen = threading.Lock()
        super().__init__(*arguments)

    def _exchange(self, batch: Any) -> None:
        with self.frozen:
            super()._exchange(batch)

    def ask_to_stop(self) -> None:
        """As it hears from the record, within a second or two."""
        self._stop_requested = True

    def die(self) -> None:
        with self._changed:
            self._abandoned, self._taken = True, LeaseError("killed")
            self._changed.notify_all()
        self._wake.set()
        self._thread.join()


def value_of(assignment: Assignment, step: int) -> float:
    """A trial's objective, of its configuration and step alone; some fail, some diverge."""
    chance = random.Random(f"{assignment.seed}/{step}").random()
    if chance < 0.004:
        raise ValueError("a trial's own error")
    rising = float(assignment.hyperparameters.get("eta", 0.3)) * (1 - 0.8**step)
    return math.nan if chance < 0.01 else rising + chance / 5


class Gangs(SimulatedGangs):
    """Writes models as files; dies, is stopped or disturbed before a chosen event."""

    def __init__(self, world: World, before: dict[int, Callable[[], None]], losses: frozenset[int]) -> None:
        super().__init__(
            value_of,
            metric=METRIC,
            start_seconds=5.0,
            unit_seconds=lambda assignment: 0.1 + random.Random(assignment.trial_id).random(),
            losses=losses,
        )
        self.world, self.before, self.heard = world, before, 0
        self.now, self.gangs = world.now, world.gangs
        self.up: set[str] = set()
        self.halted: set[str] = set()

    def clock(self) -> float:
        self.world.now = self.now
        return self.now

    def assign(self, gang: str, assignment: Assignment) -> None:
        if assignment.checkpoint is not None:
            assert storage.read(assignment.checkpoint) == MODEL + assignment.trial_id.encode()
        self.halted.discard(gang)
        super().assign(gang, assignment)

    def halt(self, gang: str) -> None:
        self.halted.add(gang)
        super().halt(gang)

    def events(self, timeout: float) -> Sequence[Event]:
        if act := self.before.pop(self.heard, None):
            act()
        self.heard += 1
        now = self.now
        [event] = super().events(timeout)
        self.now = self.world.now = max(now, self.now)  # Others went on while one waited for its storage.
        if isinstance(event, GangUp):
            self.up.add(event.gang)
            self.world.gangs = max(self.world.gangs, self.gangs)
        if isinstance(event, Served) and event.segment is not None:
            return [self._saved(event, event.segment)]
        return [event]

    def _saved(self, event: Served, segment: Segment) -> Event:
        """As a worker does: it waits while the storage is away, and gives up after ten minutes or when it is halted."""
        raw = MODEL + event.trial_id.encode()
        since = self.now
        while True:
            try:
                storage.check_job_folder(segment.checkpoint)
                storage.write(segment.checkpoint, raw)
            except StorageError as error:
                self.now += 30.0
                self.world.now = self.now
                if event.gang in self.halted or self.now - since >= 600.0:
                    return Served(gang=event.gang, trial_id=event.trial_id, error=str(error), away=True)
                self.world.asked_in_vain()
            else:
                return Served(
                    gang=event.gang,
                    trial_id=event.trial_id,
                    segment=Segment(**{**_fields(segment), "checkpoint_bytes": len(raw)}),
                )


def _fields(segment: Segment) -> dict[str, Any]:
    return {name: getattr(segment, name) for name in Segment.__dataclass_fields__}


class Trainer(XGBoostTrainer):
    """Trains on gangs that are simulated, or on none."""

    world: World
    disturbance: Disturbance

    @contextmanager
    def gangs(self, name: str, channels: Any, **options: Any) -> Iterator[Any]:
        if self.disturbance.no_head:
            raise ResourcesError("nothing answers at 127.0.0.1:6399")
        gangs = Gangs(self.world, dict(self.disturbance.before), self.disturbance.losses)
        try:
            yield gangs
        finally:
            self.world.database_away = False  # At the latest: a job that has ended waits for it in real seconds.
            self.world.held += sum((gangs.now - gangs.held_since(gang)) * WORKERS for gang in gangs.up)
            self.world.now = gangs.now


@dataclass(kw_only=True)
class Disturbance:
    """What happens to a driver: each before one of the events that it hears, counted from 0."""

    before: dict[int, Callable[[], None]] = field(default_factory=dict)
    losses: frozenset[int] = frozenset()
    no_head: bool = False
    max_seconds: float = math.inf


@dataclass(kw_only=True)
class World:
    """A machine with a record and a folder of models, and clocks of its own."""

    root: Path
    plan: Plan
    parallel: int = 3
    criteria: TuningJobCompletionCriteriaConfig | None = None
    now: float = 1_000_000.0
    skew: float = 0.0
    """By how much the database's clock is ahead of the drivers'."""
    gangs: int = 0
    held: float = 0.0
    """Worker-seconds for which gangs were up, or starting."""
    exact: bool = True
    """Whether all of it can have been billed: what a driver did after it was last heard of cannot."""
    database_away: bool = False
    comes_back_after: int = 0
    """How often a worker asks for a storage that is away before it is there again."""
    writers: list[MortalWriter] = field(default_factory=list)
    patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)

    def __post_init__(self) -> None:
        (self.root / "models").mkdir(parents=True)
        self.patch.setattr(store, "clock", self._database_clock)
        self.patch.setattr(store_writer, "clock", self._database_clock)
        self.patch.setattr(store, "time", SimpleNamespace(time=lambda: self.now))
        self.patch.setattr(store, "open_engine", self._engine)
        self.patch.setattr(store, "JobWriter", self._writer)
        for module, name, value in (
            (store_writer, "FLUSH_EVERY", 0.005),
            (store_writer, "LONGEST_PAUSE", 0.005),
            (checkpoints, "BATCH_SECONDS", 0.0),
            (patient_storage, "PAUSES", (0.0,)),
            (patient_storage, "GIVE_UP_SECONDS", 0.0),
        ):
            self.patch.setattr(module, name, value)
        with Store(self.url) as record:
            spec = {"storage_path": str(self.root / "models"), FOLDER_ID: "mine", **SPEC}
            record.create_job(JobRow(name="job", created_at=self.now, spec=spec))

    def close(self) -> None:
        """Puts everything back."""
        self.patch.undo()

    @property
    def url(self) -> str:
        """Of the record."""
        return f"sqlite:///{self.root}/record.db"

    @property
    def folder(self) -> Path:
        """Of the job's models."""
        return self.root / "models" / "job"

    @property
    def aside(self) -> Path:
        """Where the models are while their storage is away."""
        return self.root / "aside"

    def _database_clock(self, engine: sa.Engine) -> sa.ColumnElement[float]:
        return sa.bindparam(None, callable_=lambda: self.now + self.skew, type_=sa.Float)

    def _engine(self, url: str | None) -> sa.Engine:
        engine = database.open_engine(url)

        def refuse(*_: object) -> None:
            if self.database_away:
                raise OperationalError("a statement", {}, Exception("the database is away"))

        sa.event.listen(engine, "before_cursor_execute", refuse)
        return engine

    def _writer(self, *arguments: Any) -> MortalWriter:
        self.writers.append(MortalWriter(*arguments))
        return self.writers[-1]

    # ---- what happens

    def kill(self, *, heard: bool) -> None:
        """SIGKILL to the driver, just when it was heard of or some time after."""
        if heard and not self.database_away:
            self.writers[-1].flush()
        else:
            self.exact = False
        self.writers[-1].die()
        raise KilledError

    def take_over(self, disturbance: Disturbance) -> None:
        """The driver freezes for so long that another takes its lease; then it goes on."""
        frozen = self.writers[-1]
        with frozen.frozen:
            self.exact, self.now = False, self.now + LOST
            found = self.drive(disturbance)
            assert not isinstance(found, LeaseError) or found.args == ("killed",), found

    def storage_goes(self, *, file: bool) -> None:
        """The folder of models is not there, or a file stands in its place."""
        if self.folder.is_dir():
            shutil.move(self.folder, self.aside)
            if file:
                self.folder.touch()

    def storage_comes(self) -> None:
        """It is there again."""
        if self.aside.exists():
            self.folder.unlink(missing_ok=True)
            shutil.move(self.aside, self.folder)

    def asked_in_vain(self) -> None:
        """A worker could not reach its storage."""
        self.comes_back_after -= 1
        if self.comes_back_after <= 0:
            self.storage_comes()

    # ---- driving

    def search(self, max_seconds: float) -> Search:
        """What the job carries out."""
        return Search(
            name="job",
            metric=METRIC,
            mode="max",
            max_jobs=self.plan.trials,
            max_parallel_jobs=self.parallel,
            max_resource=self.plan.max_resource,
            seed=7,
            storage_path=str(self.folder),
            workers=lambda hyperparameters: WORKERS,
            limits=Limits(max_seconds=max_seconds),
            completion=self.criteria,
        )

    def drive(self, disturbance: Disturbance) -> Ended | BaseException:
        """One driver, from its start to its end or death; what it came to, or what it raised."""
        search = self.search(disturbance.max_seconds)
        trainer = Trainer(scaling=ScalingConfig(num_workers=0), hyperparameters={"objective": "binary:logistic"})
        trainer.world, trainer.disturbance = self, disturbance
        goal = Goal(job="job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=self.plan)
        lines: list[str] = []
        with Store(self.url) as record, suppress(WarmbandError):
            record.update_job("job", status="InProgress", reason="", ended_at=None)
        try:
            with Interrupts(lines.append) as interrupts:
                return Job(
                    search=search,
                    strategy=make_strategy(self.plan, RANGES, metric=METRIC, mode="max", seed=search.seed),
                    ranges=RANGES,
                    estimator=trainer,
                    channels={},
                    store=self.url,
                    watcher=Progress(goal, lines.append),
                    num_to_keep=2,
                    notify=lines.append,
                    interrupts=interrupts,
                    clock=lambda: self.now,
                ).run()
        except (KilledError, KeyboardInterrupt, WarmbandError) as error:
            return error
        finally:
            self.database_away = False

    # ---- what has to hold

    def rows(self) -> tuple[JobRow, list[TrialRow], list[LedgerRow]]:
        """What the record has."""
        with Store(self.url) as record:
            return record.job("job"), record.trials("job"), record.ledger("job")

    def answer(self) -> dict[str, Any]:
        """What has to be alike however the job came to its end."""
        job, trials, _ = self.rows()
        counted = [trial for trial in trials if trial.number >= 0 and trial.objective is not None]
        return {
            "status": (job.status, job.reason),
            "best": job.summary["best"] and job.summary["best"]["trial"],
            "trials": [(t.number, t.resource, t.objective, t.bracket, t.hyperparameters) for t in counted],
            "kept": sorted(trial.trial_id for trial in counted if trial.checkpoint),
        }

    def check(self) -> None:
        """Every model that the record names is there and whole, and every second of every gang is billed once."""
        job, trials, ledger = self.rows()
        for trial in trials:
            if trial.checkpoint and not self.aside.exists():
                raw = Path(trial.checkpoint).read_bytes()
                assert raw == MODEL + trial.trial_id.encode(), trial.trial_id
                assert len(raw) == trial.checkpoint_bytes
        if job.status in ("Completed", "Stopped"):
            billed = sum(row.worker_seconds for row in ledger)
            assert billed <= self.held + 1e-6
            assert not self.exact or billed == pytest.approx(self.held)
