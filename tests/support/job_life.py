"""A job's whole life over many drivers: the real record and real files, gangs and clocks that are simulated."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

import hpo.jobs.run
from hpo import ContinuousParameter
from hpo.jobs.driver import raised_now
from hpo.jobs.files import checkpoints
from hpo.jobs.files.folder import CLAIMED, FOLDER_ID, MARK
from hpo.jobs.raising import changes
from hpo.jobs.replay import GOES_ON_FROM, unbilled, used_before
from hpo.jobs.run import Ended
from hpo.record import store, writer as store_writer
from hpo.record.store import JobRow, LedgerRow, Store, TrialRow
from hpo.record.tables import LOST_AFTER
from tests.support.drivers import METRIC, MODEL, Disturbance, Driver, KilledError, MortalWriter, TurnByTurn, model_in
from tests.support.job_places import WORLDS, engine_at, place, template, url_at
from tests.support.job_search import Aim, drive
from trainers import XGBoostTrainer, patient_storage, storage
from trainers.checkpoint import Manifest, trial_of
from trainers.errors import LeaseError, WarmbandError

LOST = LOST_AFTER + 1.0
SPEC = {
    "objective_metric_name": METRIC,
    "objective_type": "Maximize",
    "objective_value": "last",
    "estimator": XGBoostTrainer(hyperparameters={"objective": "binary:logistic"}).to_json(),
    "hyperparameter_ranges": {"eta": ContinuousParameter(0.01, 1.0).to_json()},
    "random_seed": 7,
}


@dataclass(kw_only=True)
class World:
    """A machine with a record and a folder of models, and clocks of its own."""

    aim: Aim
    parallel: int = 3
    now: float = 1_000_000.0
    skew: float = 0.0
    """By how much the database's clock is ahead of the drivers'."""
    gangs: int = 0
    held: float = 0.0
    """Worker-seconds for which gangs were held, as far as their drivers were heard of."""
    driven: float = 0.0
    """Seconds for which drivers drove the job, likewise."""
    database_away: bool = False
    full: bool = False
    """Whether the disk of models takes nothing more."""
    known_when_gone: bool = False
    """Whether the record knew of the folder of models when its storage went away."""
    comes_back_after: int = 0
    """How often a worker asks for a storage that is away before it is there again."""
    last: Driver | None = None
    """The one that drove last."""
    driver: Driver | None = None
    """The one whose main thread runs now."""
    start_over: set[str] = field(default_factory=set)
    """Trials whose checkpoint was found changed."""
    faults: list[str] = field(default_factory=list)
    """Forbidden actions of threads."""
    planted: dict[Path, str] = field(default_factory=dict)
    """Files that somebody else put among the job's, with what they hold."""
    root: Path = field(default_factory=place)
    patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)

    def __post_init__(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "models").mkdir(parents=True)
        shutil.copyfile(template(), self.root / "record.db")
        WORLDS[self.url] = self
        self._peek = sqlite3.connect(self.root / "record.db", check_same_thread=False)
        self._storage()
        for module, name, value in (
            (store, "clock", self._database_clock),
            (store_writer, "clock", self._database_clock),
            (store, "steady", SimpleNamespace(now=lambda: self.now)),
            (store_writer, "steady", SimpleNamespace(now=lambda: self.now)),
            (store, "open_engine", engine_at),
            (store, "JobWriter", self._writer),
            (store_writer, "FLUSH_EVERY", 3600.0),
            (store_writer, "LONGEST_PAUSE", 0.005),
            (hpo.jobs.run, "Checkpoints", self._files),
            (checkpoints, "BATCH_SECONDS", 0.0),
            (patient_storage, "PAUSES", (0.0,)),
            (patient_storage, "GIVE_UP_SECONDS", 0.0),
        ):
            self.patch.setattr(module, name, value)
        with Store(self.url) as record:
            plan, kind = self.aim.plan, "Maximize" if self.aim.mode == "max" else "Minimize"
            value = "best" if self.aim.best_value else "last"
            cuts = any(len(bracket.rungs) > 1 for bracket in plan.brackets)
            spec = {**SPEC, "storage_path": str(self.root / "models"), FOLDER_ID: "mine"}
            spec |= {"objective_type": kind, "objective_value": value}
            spec |= {"repeats": plan.repeats, "max_jobs": plan.trials, "strategy": "Hyperband" if cuts else "Random"}
            spec |= {"strategy_config": {"max_resource": plan.max_resource, "min_resource": 1} if cuts else None}
            record.create_job(JobRow(name="job", created_at=self.now, spec=spec, plan=plan.to_json()))

    def close(self) -> None:
        """Puts everything back, and leaves nothing."""
        self.patch.undo()
        self._peek.close()
        del WORLDS[self.url]
        shutil.rmtree(self.root)

    @property
    def url(self) -> str:
        """Of the record."""
        return url_at(self.root)

    @property
    def folder(self) -> Path:
        """Of the job's models."""
        return self.root / "models" / "job"

    @property
    def aside(self) -> Path:
        """The folder of the models while their storage is away."""
        return self.root / "aside"

    @property
    def max_jobs(self) -> int:
        """Its trials in all, as the record has it."""
        return int(self.rows()[0].spec["max_jobs"])

    def lease(self) -> str:
        """Who drives the job, as the record has it."""
        return str(self._peek.execute("select lease from jobs").fetchone()[0])

    def stands_at(self, trial_id: str) -> int:
        """Units from which a trial goes on, as the record has it; 0 where it does not count, or has failed."""
        query = (
            "select resource, details from trials where trial_id = ? and objective is not null and failure_reason = ''"
        )
        for resource, details in self._peek.execute(query, [trial_id]):
            return int(json.loads(details).get(GOES_ON_FROM, {}).get("resource", resource))
        return 0

    def statement(self) -> None:
        """A statement is about to be sent to the database."""
        if self.driver:
            self.driver.point()
        if self.database_away:
            raise OperationalError("a statement", {}, Exception("the database is away"))

    def _storage(self) -> None:
        """Calls of storage are moments of a driver's life, and its disk can be full."""

        def with_point(where: Any, name: str) -> None:
            act = getattr(where, name)

            def noticed(*arguments: Any, **named: Any) -> Any:
                if self.driver:
                    self.driver.point()
                return act(*arguments, **named)

            self.patch.setattr(where, name, noticed)

        for name in ("read", "write", "save", "size", "names", "is_there", "make_folder", "check_job_folder"):
            with_point(storage, name)
        with_point(Path, "mkdir")
        with_point(Path, "write_bytes")
        write_bytes = Path.write_bytes

        def written(path: Path, data: bytes) -> int:
            if self.full and self.folder in path.parents:
                write_bytes(path, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return write_bytes(path, data)

        self.patch.setattr(Path, "write_bytes", written)

    def _database_clock(self, engine: sa.Engine) -> sa.ColumnElement[float]:
        return sa.bindparam(None, callable_=lambda: self.now + self.skew, type_=sa.Float)

    def _writer(self, *arguments: Any) -> Any:
        if self.driver is None:  # Who deletes the job.
            return store_writer.JobWriter(*arguments)
        self.driver.writer = MortalWriter(self.driver, *arguments)
        return self.driver.writer

    def _files(self, *arguments: Any, **named: Any) -> TurnByTurn:
        assert self.driver is not None
        return TurnByTurn(self.driver, *arguments, **named)

    # ---- what happens

    @property
    def driving(self) -> Driver:
        """The driver to which something happens now."""
        assert self.driver is not None
        return self.driver

    def kill(self, *, heard: bool) -> None:
        """SIGKILL to the driver, just when it was heard of or some time after."""
        if heard:
            self.driving.turn()
        self.driving.dead = True
        if self.driving.writer:
            self.driving.writer.die()
        raise KilledError

    def interrupt(self, times: int) -> None:
        """Ctrl-C."""
        self.driving.asked()
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)

    def stop(self, ask: Callable[[], object] | None = None) -> None:
        """The job is asked to stop, by a function that is given; the driver hears of it within a second or two."""
        with Store(self.url) as record:
            if ask:
                ask()
            else:
                record.request_stop("job")
            asked = record.job("job").status == "Stopping"
        if asked and self.driving.writer:
            self.driving.turn()
            self.driving.asked()

    def take_over(self, disturbance: Disturbance) -> None:
        """The driver freezes for so long that another takes its lease; then it goes on."""
        frozen = self.driving.writer
        with frozen.frozen if frozen else threading.Lock():
            self.now += LOST
            found = self.drive(disturbance)
            assert not isinstance(found, LeaseError), found

    def database_goes(self) -> None:
        """It does not answer; the driver's writer notices."""
        self.database_away = True
        if self.driving.writer:
            with suppress(WarmbandError):
                self.driving.writer.flush()

    def database_comes(self) -> None:
        """It answers again."""
        self.database_away = False
        self.driving.turn()

    def storage_goes(self, *, file: bool) -> None:
        """The folder of models is not there, or a file stands in its place."""
        if self.folder.is_dir():
            summary = self._peek.execute("select summary from jobs").fetchone()[0]
            self.known_when_gone = bool(json.loads(summary).get(CLAIMED))
            shutil.move(self.folder, self.aside)
            if file:
                self.folder.touch()

    def storage_comes(self) -> None:
        """It is there again, and takes files."""
        self.full = False
        if not self.aside.exists():
            return
        if self.folder.is_dir():
            assert not self.known_when_gone, "a folder that was there was made anew"
            shutil.rmtree(self.aside)  # With what somebody put there: who gave up the folder is this function.
            self.planted = {path: text for path, text in self.planted.items() if self.folder not in path.parents}
            return
        self.folder.unlink(missing_ok=True)
        shutil.move(self.aside, self.folder)

    def asked_in_vain(self) -> None:
        """A worker could not reach its storage."""
        self.comes_back_after -= 1
        if self.comes_back_after <= 0:
            self.storage_comes()

    def plant(self, place: str, name: str) -> None:
        """Somebody puts a file where the job has files, or will have some: in any folder whose path it computes."""
        folder = self.root / "models" / place
        if self.folder in (folder, *folder.parents) and not (self.folder / MARK).is_file():
            return  # It is not the job's yet, and would never be: the job would refuse it.
        path = folder / name
        if place.count("/") > 1 and not folder.is_dir():
            return  # A folder would stand where a checkpoint of one file will be.
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(len(self.planted)))
        self.planted[path] = path.read_text()

    def raise_limit(self, name: str, value: int) -> None:
        """A limit is raised, as `hpo resume --set` does it."""
        with Store(self.url) as record:
            job = record.job("job")
            record.update_job("job", **changes(job, raised_now(record, job, {name: value})))

    def limit(self, **limits: float) -> None:
        """The job has these limits, such as `max_runtime_in_seconds`, as if it had begun with them."""
        with Store(self.url) as record:
            record.update_job("job", spec={**record.job("job").spec, **limits})

    # ---- driving

    def drive(self, disturbance: Disturbance) -> Ended | BaseException:
        """One driver, from its start to its end or death; what it came to, or what it raised."""
        before, driver = self.driver, Driver(self, disturbance)
        self.driver = driver
        try:
            return drive(self, driver)
        except (KilledError, KeyboardInterrupt, WarmbandError) as error:
            return KilledError() if driver.dead else error
        finally:
            if driver.files:
                driver.files.leave()
            self.database_away = False
            self.held += driver.billed
            self.driven += driver.drove
            if driver.left_gangs:
                self.faults.append("gangs were not given back")
            self.driver, self.last = before, driver

    # ---- what has to hold

    def rows(self) -> tuple[JobRow, list[TrialRow], list[LedgerRow]]:
        """Return the job, its trials and its ledger from the record."""
        with Store(self.url) as record:
            return record.job("job"), record.trials("job"), record.ledger("job")

    def answer(self) -> dict[str, Any]:
        """Return the parts that have to be equal for every life of the job: counted trials, rungs and the winner."""
        job, trials, _ = self.rows()
        counted = [trial for trial in trials if trial.number >= 0 and trial.objective is not None]
        with Store(self.url) as record:
            reports = {(row.trial_id, row.step): row.objective for row in record.reports("job")}
        return {
            "status": (job.status, job.reason),
            "best": (job.summary.get("best") or {}).get("trial"),
            "trials": [
                (t.number, t.resource, t.objective, t.bracket, t.hyperparameters, t.parent, t.replaces) for t in counted
            ],
            "reports": [[reports.get((t.trial_id, step)) for step in range(1, t.resource + 1)] for t in counted],
            "kept": sorted(trial.trial_id for trial in counted if trial.checkpoint),
        }

    def check_planted(self) -> None:
        """Every file that somebody else put among the job's is there and holds what it held."""
        away = self.aside.exists()
        for path, text in self.planted.items():
            at = self.aside / path.relative_to(self.folder) if away and self.folder in path.parents else path
            assert at.is_file(), f"{path} is somebody's, and gone"
            assert at.read_text() == text

    def check(self) -> JobRow:
        """Every model that the record names is there and whole, and every second of every gang is billed once.

        The time that a limit goes by is that in which it was driven.
        """
        assert not self.faults, self.faults
        self.check_planted()
        job, trials, ledger = self.rows()
        for trial in [] if self.aside.exists() else trials:
            back = trial.details.get(GOES_ON_FROM, {})
            for uri, manifest in (
                (trial.checkpoint, trial.manifest),
                (back.get("checkpoint"), Manifest.from_json(back.get("files", {}))),
            ):
                if uri:
                    assert model_in(uri, manifest) == MODEL + trial_of(uri).encode(), uri
        billed = sum(row.worker_seconds for row in [*ledger, *unbilled(job, ledger, job.held_until)])
        assert billed == pytest.approx(self.held), "the bill is not the time for which gangs were held"
        seconds = used_before(job, ledger, job.held_until).seconds
        assert seconds == pytest.approx(self.driven), "its runtime is not the time for which it was driven"
        return job
