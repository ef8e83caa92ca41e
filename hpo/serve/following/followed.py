"""A followed job: its rows in memory, kept up to date, and documents made of them."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from hpo.record import (
    Changes,
    JobRow,
    LedgerRow,
    ReportRow,
    State,
    Store,
    Totals,
    TrialRow,
    is_training,
    objective,
    repeats_of,
    split,
    tags_of,
    untuned_counts,
    when,
)
from hpo.sagemaker import Overview, Snapshot, describe, describe_act, describe_any
from trainers.channels import predicts

SLACK = 60.0
"""Seconds by which rows may be older than the driver's heartbeat that they came with."""

MOST_BACK = 20_000
"""Rows that are told to who comes back; who has missed more reads the job anew."""


class FollowedJob:
    """One job of the record, for all who ask for it. Any thread may call.

    Args:
        store: the record.
        name: the job's.

    Raises:
        ConfigurationError: there is no such job.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.name, self._store = name, store
        self._watch = store.watch(name)
        self._lock = threading.Lock()
        self.version = 0
        """Another number after every change."""

    def look(self) -> list[tuple[str, Any, float]]:
        """Reads what has changed, in one thread at a time.

        Returns:
            Events: the kind, the value, and a time that is no later than any in the next look's.
        """
        with self._lock:
            changes = self._watch.look()
            if not changes:
                return []
            self.version += 1
            return list(self._events(changes))

    def since(self, at: float) -> list[tuple[str, Any, float]] | None:
        """Events of what may have changed since a moment; None where that is too much, or too long ago."""
        with self._lock:
            changes = self._watch.since(at - SLACK, MOST_BACK)
            return None if changes is None else list(self._events(changes))

    # ---- documents

    def snapshot(self) -> Snapshot:
        """The job as it was at the last look."""
        with self._lock:
            return self._snapshot()

    def described(self) -> dict[str, Any]:
        """As `hpo describe --json` has it."""
        snapshot = self.snapshot()
        if is_training(snapshot.job):
            return describe_any(self._store, self.name)
        untuned = () if snapshot.untuned is None else (snapshot.untuned,)
        return describe(snapshot.job, [*snapshot.trials, *untuned], snapshot.acts)

    def trial(self, trial_id: str) -> tuple[Snapshot, TrialRow | None]:
        """A trial, or the un-tuned run; None where there is none of that name."""
        with self._lock:
            return self._snapshot(), self._watch.trials.get(trial_id)

    def summary(self) -> dict[str, Any]:
        """As `hpo jobs --json` has it, with the bill by kind and the trials that are planned beside."""
        with self._lock:
            return self._summary()

    def _snapshot(self) -> Snapshot:
        watch = self._watch
        trials, untuned = split(sorted(watch.trials.values(), key=lambda each: each.number))
        by_trial: dict[str, float] = defaultdict(float)
        for (trial, _), billed in watch.seconds.items():
            by_trial[trial] += billed
        taken = {trial.given for trial in trials}
        return Snapshot(
            job=watch.job,
            trials=trials,
            untuned=untuned,
            seconds=self._by_kind(),
            trial_seconds=dict(by_trial),
            acts=list(watch.acts),
            waiting=[addition for addition in watch.additions if addition.id not in taken],
        )

    def _by_kind(self) -> dict[str, float]:
        seconds: dict[str, float] = defaultdict(float)
        for (_, kind), billed in self._watch.seconds.items():
            seconds[kind] += billed
        return dict(seconds)

    def _summary(self) -> dict[str, Any]:
        job, (trials, untuned) = self._watch.job, split(self._watch.trials.values())
        totals = Totals(
            trials=Counter(_state(job, trial) for trial in trials),
            best=self._best(job, trials, untuned),
            seconds=self._by_kind(),
            forks=sum(bool(trial.replaces) for trial in trials),
        )
        overview = Overview(job=job, totals=totals)
        return {**overview.summary(), **more_of(overview)}

    def _best(self, job: JobRow, trials: list[TrialRow], untuned: TrialRow | None) -> float | None:
        if repeats_of(job) > 1:
            view = self._snapshot()
            return None if view.result is None else view.score(view.result)
        runs = [trial for trial in trials if trial.status not in ("Failed", "Diverged")]
        runs += [untuned] if untuned is not None and untuned_counts(job, untuned) else []
        values = [objective(job, run) for run in runs]
        better = max if job.spec["objective_type"] == "Maximize" else min
        return better((value for value in values if value is not None), default=None)

    # ---- events

    def _events(self, changes: Changes) -> Iterator[tuple[str, Any, float]]:
        heard = self._watch.job.heard
        yield "job", self._summary(), heard
        if changes.trials:
            snapshot = self._snapshot()
            yield (
                "trials",
                {"trials": [{"Number": trial.number, **snapshot.trial_summary(trial)} for trial in changes.trials]},
                heard,
            )
        if changes.reports:
            yield "reports", report_columns(changes.reports), heard
        if changes.lines:
            yield (
                "lines",
                {"lines": [{"id": row.id, "at": when(row.at), "text": row.text} for row in changes.lines]},
                heard,
            )
        if changes.ledger:
            yield "ledger", ledger_columns(changes.ledger), heard
        if changes.additions:
            rows = [
                {"id": row.id, "at": when(row.at), "hyperparameters": row.hyperparameters} for row in changes.additions
            ]
            yield "additions", {"additions": rows}, heard
        if changes.acts:
            yield "acts", {"acts": [describe_act(act) for act in changes.acts]}, heard


def more_of(overview: Overview) -> dict[str, Any]:
    """What a job's line has beside what `hpo jobs --json` shows."""
    return {
        "PlannedTrainingJobs": overview.planned,
        "BilledSeconds": dict(overview.totals.seconds),
        "ObjectiveType": overview.job.spec["objective_type"],
        "LastModifiedTime": when(overview.job.heard),
        "Tags": tags_of(overview.job.spec.get("tags")),
        "SilentSeconds": round(overview.job.silent, 1),
        "Predicts": predicts((overview.job.spec.get("inputs") or {}).get("train") or {}),
    }


def report_columns(rows: list[ReportRow] | Any) -> dict[str, list[Any]]:
    """Reports by column, a place in each of them a report."""
    return {
        "trial": [row.trial_id for row in rows],
        "step": [row.step for row in rows],
        "objective": [row.objective for row in rows],
        "at": [row.at for row in rows],
        "metrics": [row.metrics for row in rows],
    }


def ledger_columns(rows: list[LedgerRow] | Any) -> dict[str, list[Any]]:
    """Billed seconds by column; of each the moments between which its gang was held, for a chart over time.

    An older Warmband's rows have no size of the gang, and no beginning.
    """
    return {
        "gang": [row.gang for row in rows],
        "trial": [row.trial_id for row in rows],
        "kind": [row.kind for row in rows],
        "from": [row.at - row.worker_seconds / row.workers if row.workers else None for row in rows],
        "to": [row.at for row in rows],
        "worker_seconds": [row.worker_seconds for row in rows],
    }


def _state(job: JobRow, trial: TrialRow) -> State:
    valued = objective(job, trial) is not None
    return State(status=trial.status, ended=trial.ended_at is not None, valued=valued)
