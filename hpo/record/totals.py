"""Totals of trials and bills, summed by the database without reading trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from hpo.record.tables import ADDITIONS, LEDGER, TRIALS, JobRow

_FEW = 100
"""Jobs up to which the database is asked for them by name; else for all, as it limits how many names there may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State by which a trial is counted: its status, whether it has ended, and whether it has an objective."""

    status: str
    ended: bool
    valued: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A job's sums.

    Args:
        trials: the tuned ones, by their state.
        best: the best objective of those that neither failed nor diverged; None where none has one.
        seconds: billed worker-seconds, by kind.
        forks: trials that took the places of others.
    """

    trials: Mapping[State, int] = field(default_factory=Counter)
    best: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    forks: int = 0

    @property
    def ended(self) -> int:
        """Trials that have ended."""
        return sum(count for state, count in self.trials.items() if state.ended)

    @property
    def worker_seconds(self) -> float:
        """Billed worker-seconds in all."""
        return sum(self.seconds.values())


def totals_of(connection: sa.Connection, jobs: Iterable[JobRow]) -> dict[str, Totals]:
    """The sums of jobs, by name."""
    by_name = {job.name: job for job in jobs}
    some = list(by_name) if len(by_name) <= _FEW else None
    trials = _TRIALS if some is None else _TRIALS.where(TRIALS.c.job.in_(some))
    bills = _SECONDS if some is None else _SECONDS.where(LEDGER.c.job.in_(some))
    states: dict[str, Counter[State]] = defaultdict(Counter)
    forks: Counter[str] = Counter()
    best: dict[str, float] = {}
    for row in connection.execute(trials):
        job = by_name.get(row.job)
        if job is None:
            continue  # It was recorded behind the jobs that were read.
        by_best = job.spec["objective_value"] == "best"
        better = max if job.spec["objective_type"] == "Maximize" else min
        valued = row.has_best if by_best else row.has_last
        state = State(status=row.status, ended=bool(row.ended), valued=bool(valued))
        states[row.job][state] += row.trials
        forks[row.job] += row.forks
        if valued and row.status not in ("Failed", "Diverged"):
            low, high = (row.best_low, row.best_high) if by_best else (row.last_low, row.last_high)
            value = high if better is max else low
            best[row.job] = better(best.get(row.job, value), value)
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    for row in connection.execute(bills):
        seconds[row.job][row.kind] = row.seconds
    return {
        name: Totals(trials=states[name], best=best.get(name), seconds=seconds.get(name, {}), forks=forks[name])
        for name in by_name
    }


def billed(connection: sa.Connection, name: str) -> dict[tuple[str, str], float]:
    """Billed worker-seconds of a job by trial, empty for a gang's own, and kind."""
    kinds = (LEDGER.c.trial_id, LEDGER.c.kind)
    query = sa.select(*kinds, sa.func.sum(LEDGER.c.worker_seconds)).where(LEDGER.c.job == name).group_by(*kinds)
    return {(trial, kind): seconds for trial, kind, seconds in connection.execute(query)}


def units_trained(connection: sa.Connection, name: str) -> int:
    """Return the units that all trials of a job trained themselves; a fork's parent trained the others."""
    units = sa.func.sum(TRIALS.c.resource - TRIALS.c.parent_resource)
    return int(connection.scalar(sa.select(units).where(TRIALS.c.job == name)) or 0)


def begun_and_waiting(connection: sa.Connection, name: str) -> tuple[int, int]:
    """How many trials of a job have begun, forks in others' places apart, and how many additions no trial has taken."""
    begun = sa.select(sa.func.count()).where(TRIALS.c.job == name, TRIALS.c.number >= 0, TRIALS.c.replaces == "")
    taken = sa.exists().where(TRIALS.c.job == name, TRIALS.c.given == ADDITIONS.c.id)
    waiting = sa.select(sa.func.count()).where(ADDITIONS.c.job == name, sa.not_(taken))
    return connection.scalar(begun) or 0, connection.scalar(waiting) or 0


_COUNTED = (
    TRIALS.c.job,
    TRIALS.c.status,
    TRIALS.c.ended_at.is_not(None).label("ended"),
    TRIALS.c.objective.is_not(None).label("has_last"),
    TRIALS.c.best_objective.is_not(None).label("has_best"),
)
_TRIALS = (
    sa.select(
        *_COUNTED,
        sa.func.count().label("trials"),
        sa.func.sum(sa.case((TRIALS.c.replaces != "", 1), else_=0)).label("forks"),
        sa.func.min(TRIALS.c.objective).label("last_low"),
        sa.func.max(TRIALS.c.objective).label("last_high"),
        sa.func.min(TRIALS.c.best_objective).label("best_low"),
        sa.func.max(TRIALS.c.best_objective).label("best_high"),
    )
    .where(TRIALS.c.number >= 0)
    .group_by(*_COUNTED)
)
_SECONDS = sa.select(LEDGER.c.job, LEDGER.c.kind, sa.func.sum(LEDGER.c.worker_seconds).label("seconds")).group_by(
    LEDGER.c.job, LEDGER.c.kind
)
