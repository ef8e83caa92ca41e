"""Searches that are broken off and taken up again, on simulated gangs, with a record in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from hpo.jobs.recorder import JobRecord
from hpo.jobs.replay import Memory, Sound, used_before
from hpo.jobs.run import notes_of
from hpo.record.store import AdditionRow, JobRow, LedgerRow, ReportRow, TrialRow
from hpo.record.tables import decode, encode
from hpo.search.controller import Controller
from hpo.search.simulated_gangs import Curve, SimulatedGangs
from hpo.strategies.completion_criteria import FIRST_FAILURES
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from tests.support.simulated import METRIC, WORKERS, Draws, drawn, search_of, uneven
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Event, GangUp, Served

START = 8.0

GAP = 1000.0
"""Seconds for which nobody drives the job."""


class KilledError(BaseException):
    """A stand-in for SIGKILL: nothing is written after it."""


@dataclass
class Rows:
    """A store and its writer in memory; a killed writer writes nothing more."""

    job_row: JobRow = field(default_factory=lambda: JobRow(name="job", created_at=0.0))
    trials: dict[str, TrialRow] = field(default_factory=dict)
    reports: dict[tuple[str, int], ReportRow] = field(default_factory=dict)
    bills: list[LedgerRow] = field(default_factory=list)
    dead: bool = False
    stop_requested: bool = False
    additions: Sequence[AdditionRow] = ()
    stops: dict[str, str] = field(default_factory=dict)
    lost_lease: bool = False
    name: str = "job"
    before: list[tuple[dict[Any, Any], Any, Any]] = field(default_factory=list)
    """The previous row of each written trial or report, in the order of writing."""

    def job(self, **changes: Any) -> None:
        if not self.dead:
            self.job_row = replace(self.job_row, **{name: decode(encode(value)) for name, value in changes.items()})

    def trial(self, row: TrialRow) -> None:
        if not self.dead:
            self._put(self.trials, row.trial_id, row)

    def report(self, *rows: ReportRow) -> None:
        for row in () if self.dead else rows:
            self._put(self.reports, (row.trial_id, row.step), row)

    def ledger(self, *rows: LedgerRow) -> None:
        if not self.dead:
            self.bills += rows

    def lose(self, rows: int) -> None:
        """The last rows of trials and reports were not written yet."""
        for _ in range(min(rows, len(self.before))):
            table, key, row = self.before.pop()
            table.pop(key) if row is None else table.update({key: row})

    def _put(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        self.before.append((table, key, table.get(key)))
        table[key] = row


class Mortal(SimulatedGangs):
    """Dies with its driver at a chosen event; writes checkpoints to a disk that outlives it."""

    def __init__(self, *parts: Any, disk: set[str], dies_at: float, rows: Rows, **named: Any) -> None:
        super().__init__(*parts, **named)
        self.disk, self.dies_at, self.rows, self.heard_of = disk, dies_at, rows, 0
        self.up: set[str] = set()
        self.up_at = math.inf

    def assign(self, gang: str, assignment: Assignment) -> None:
        assert (assignment.checkpoint in self.disk) if assignment.start else assignment.checkpoint is None
        super().assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        if self.heard_of >= self.dies_at:
            self.rows.dead = True
            raise KilledError
        self.heard_of += 1
        found = super().events(timeout)
        for event in found:
            if isinstance(event, GangUp):
                self.up.add(event.gang)
                self.up_at = min(self.up_at, self.now)
            if segment := getattr(event, "segment", None):
                self.disk.add(segment.checkpoint)
        return found


def luck(assignment: Assignment, step: int) -> float:
    return drawn(f"{assignment.trial_id}{step}")


def curve(assignment: Assignment, step: int) -> float:
    """A value of trial and step alone; some fail, some diverge."""
    found = luck(assignment, step)
    if found < 0.004:
        raise ValueError("a trial's own error")
    if found < 0.008:
        raise DivergedError("the loss is not finite")
    return math.nan if found < 0.012 else found


def hyperband(plan: Plan) -> TrialScheduler:
    return SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max")


@dataclass(kw_only=True)
class Service:
    """A search over several drivers' lives."""

    plan: Plan
    scheduler: Callable[[Plan], TrialScheduler] = hyperband
    searcher: Callable[[], Searcher] = Draws
    parallel: int = 3
    curve: Curve = curve
    gangs: type[Mortal] = Mortal
    options: dict[str, Any] = field(default_factory=dict)
    sound: Sound | None = None
    rows: Rows = field(default_factory=Rows)
    disk: set[str] = field(default_factory=set)
    now: float = 0.0
    served: list[Assignment] = field(default_factory=list)
    held: float = 0.0
    """Worker-seconds for which gangs were up."""
    with_gang: float = 0.0
    """Seconds in which there was one."""

    def drive(
        self, dies_at: float = math.inf, stop_at: float = math.inf, losses: frozenset[int] = frozenset()
    ) -> Controller | None:
        """Runs until the search's end, the driver's death (None) or a stop."""
        rows = self.rows
        rows.dead, job, began = False, rows.job_row, self.now
        before = used_before(job, rows.bills, heard=began)
        memory = Memory(
            rows.trials.values(), rows.reports.values(), before, self.sound or (lambda uri, _: uri in self.disk)
        )
        rows.ledger(*before.unbilled)
        self.now += GAP if job.summary else 0.0
        record = JobRecord(rows, METRIC, memory=memory, notes=notes_of(job, began))  # type: ignore[arg-type]
        record.note(runs=[*record.notes["runs"], [self.now, None]])
        gangs = self.gangs(
            self.curve,
            metric=METRIC,
            losses=losses,
            start_seconds=START,
            unit_seconds=uneven,
            disk=self.disk,
            dies_at=dies_at,
            rows=rows,
        )
        gangs.now, gangs.gangs = self.now, len(rows.bills)  # Gangs of another driver have other names.
        controller = Controller(
            search_of(self.plan, parallel=self.parallel, **self.options),
            searcher=self.searcher(),
            scheduler=self.scheduler(self.plan),
            decode=dict,
            gangs=Stopping(gangs, stop_at) if math.isfinite(stop_at) else gangs,  # type: ignore[arg-type]
            record=record,
            recall=memory,
            clock=gangs.clock,
        )
        try:
            if math.isfinite(stop_at):
                gangs.stop = controller.stop  # type: ignore[attr-defined]
            controller.run()
        except KilledError:
            controller = None  # type: ignore[assignment]
        self.served += gangs.served
        self.now = gangs.now
        self.with_gang += max(0.0, self.now - gangs.up_at)
        if controller:
            runs = [*record.notes["runs"][:-1], [record.notes["runs"][-1][0], self.now]]
            record.note(runs=runs, held={}, gang_seconds=record.gang_seconds, gang_since=None)
        self.held += sum((self.now - gangs.held_since(gang)) * WORKERS for gang in gangs.up)
        return controller


class Stopping:
    """Gangs beside which somebody asks for a stop after so many events."""

    def __init__(self, gangs: Mortal, stop_at: float) -> None:
        self._gangs, self._stop_at = gangs, stop_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gangs, name)

    def events(self, timeout: float) -> Sequence[Event]:
        if self._gangs.heard_of == self._stop_at:
            self._gangs.stop("stop requested")  # type: ignore[attr-defined]
        return self._gangs.events(timeout)


def answer(service: Service, controller: Controller | None) -> dict[str, Any]:
    """Return the parts that have to be equal: trials, their ends, values and reports, rungs and the winner.

    Of a job whose first trials all failed, those alone: others may train beside them, and do not count.
    """
    assert controller is not None
    best = controller.best()
    untuned = controller.untuned
    hopeless = controller.trials.hopeless
    counted = {name for name, row in service.rows.trials.items() if not hopeless or 0 <= row.number < FIRST_FAILURES}
    assert all(row.objective is None for name, row in service.rows.trials.items() if row.number >= 0) or not hopeless
    trials = {
        name: (
            row.number,
            row.status,
            row.resource,
            row.objective,
            row.hyperparameters,
            row.failure_reason,
            row.bracket,
        )
        for name, row in service.rows.trials.items()
        if name in counted
    }
    cuts = controller.trials.rungs.cuts
    return {
        "trials": trials,
        "reports": {key: row.objective for key, row in service.rows.reports.items() if key[0] in counted},
        "best": best and best.id,
        "cuts": hopeless or {(cut.bracket, cut.resource): (cut.went_on, cut.stopped) for cut in cuts},
        "trained": hopeless or controller.trained,
        "untuned": hopeless or (untuned and (untuned.resource, untuned.failure, untuned.diverged)),
        "completed": controller.completed,
        "verdict": controller.trials.verdict,
    }


def check_bills(service: Service, controller: Controller) -> None:
    """Every second of every gang that was up is billed, and none twice."""
    billed = sum(row.worker_seconds for row in service.rows.bills)
    assert billed == pytest.approx(service.held)
    assert controller.ledger.total == pytest.approx(billed)
    assert controller.ledger.gang_seconds == pytest.approx(service.with_gang)


def ends_as(service: Service, expected: dict[str, Any]) -> Controller:
    """A search that is driven to its end comes to what was expected, and is billed for no more than it held."""
    controller = service.drive()
    assert answer(service, controller) == expected
    assert controller is not None
    check_bills(service, controller)
    return controller


class Spoiling(Mortal):
    """A gang that was lost writes late: each trial may find its checkpoint changed once, in whatever driver's time."""

    spoilt: set[str]
    seed: int

    def _serve(self, gang: str, assignment: Assignment, seconds: float) -> Served:
        trial = assignment.trial_id
        if assignment.start and trial not in self.spoilt and drawn(f"{self.seed}/{assignment.checkpoint}") < 0.3:
            self.spoilt.add(trial)
            return Served(gang=gang, trial_id=trial, error="it has other bytes", spoilt=True)
        return super()._serve(gang, assignment, seconds)


PLANS = [lay_out(30, 1, 30), lay_out(9, 1, 9), run_all(7, 12), with_median_rule(run_all(12, 18))]


@cache
def undisturbed(plan: Plan, parallel: int) -> dict[str, Any]:
    """The answer of a search that nothing breaks off; many examples are compared with the same one."""
    service = Service(plan=plan, parallel=parallel)
    return answer(service, service.drive())
