"""Metrics of a running job for Prometheus: gauges and histograms, exported through Ray's metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

from hpo.cost import Entry, Kind
from hpo.observers.counters import Tally
from hpo.observers.progress import Goal
from hpo.record import TrialStatus
from hpo.search import JobState, TrialRun
from hpo.strategies import Cut
from trainers.gangs import Report

EMIT_SECONDS = 1.0
"""How often the figures are handed to Ray. It must be less than Ray's own period of 10 s: Ray passes a gauge on once
each time it was set, and forgets one that was not set for two periods."""

JOB = "tuning_job"
"""The tag that names the job. Not `job`, which is Prometheus' own name for what it scrapes."""

STALENESS = ("0", "1", "2", "3", "4-7", "8+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. Its tags have few values each; a trial is none of them, as a series would stay for each.

    Args:
        name: as it is handed to Ray, which puts `ray_` in front.
        text: what it is.
        unit: what it counts or measures.
        tags: its tags beside the job's.
        boundaries: the upper bounds of a histogram's buckets; empty for a gauge.
    """

    name: str
    text: str
    unit: str
    tags: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


TRIALS = Metric(name="warmband_trials", text="Trials by their status in the record", unit="trials", tags=("state",))
RUNGS = Metric(
    name="warmband_rung_trials",
    text="Trials at each rung: its places in the plan, those that reached it, and what its decision did with them; "
    "brackets that are alike are added up, and numbered from 1",
    unit="trials",
    tags=("bracket", "rung", "state"),
)
UNITS = Metric(
    name="warmband_units", text="Rounds or epochs: trained by now, and planned in all", unit="units", tags=("state",)
)
BEST = Metric(
    name="warmband_best_objective",
    text="The best trial's objective; there from the first finite one on",
    unit="the objective's",
    tags=("metric",),
)
BILLED = Metric(
    name="warmband_billed_worker_seconds",
    text="The ledger: billed worker-seconds by what they went into; `open` is held, and not booked yet",
    unit="worker-seconds",
    tags=("kind",),
)
GANGS = Metric(name="warmband_gangs", text="Gangs by what they do", unit="gangs", tags=("phase",))
FAILURES = Metric(
    name="warmband_failures",
    text="Trials that failed, trials that diverged, and assignments that lost their workers and were given out again",
    unit="trials, assignments",
    tags=("kind",),
)
PUSHES = Metric(
    name="warmband_pushes",
    text="Gradients that parameter servers applied, by the updates that came between pull and push; "
    "there for trials on parameter servers",
    unit="pushes",
    tags=("staleness",),
)
STARTS = Metric(
    name="warmband_gang_start_seconds",
    text="From the moment a gang's workers are held until it can serve, at its start and each time it lost workers",
    unit="seconds",
    boundaries=(1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600),
)
CHECKPOINTS = Metric(
    name="warmband_checkpoint_seconds",
    text="Reading and writing checkpoints, an assignment",
    unit="seconds",
    boundaries=(0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
)
METRICS = (TRIALS, RUNGS, UNITS, BEST, BILLED, GANGS, FAILURES, PUSHES, STARTS, CHECKPOINTS)


class Metrics:
    """Hands a job's figures to Ray about once a second; an `Observer`, and the block in which the job's Ray is up.

    All but the histograms are gauges that hold what the record holds. So they are right again after a resume, where
    counters in another process would begin at 0, and they go with the job: Ray's agents forget a gauge, and keep a
    counter for as long as their node is up.

    Args:
        goal: what the job is after.
        tally: what its trials add up to; somebody else keeps it.
        clock: seconds, on any clock that runs forward.
    """

    def __init__(self, goal: Goal, tally: Tally, clock: Callable[[], float] = time.monotonic) -> None:
        self._goal = goal
        self._tally = tally
        self._clock = clock
        self._planned = goal.plan.resource  # Kept, since a plan of many brackets adds them up each time.
        self._instruments: dict[str, Any] = {}
        self._state: JobState | None = None
        self._emitted = -EMIT_SECONDS
        self._lost: Counter[str] = Counter()
        self._pushes: dict[str, Mapping[str, int]] = {}
        self._all_pushes: Counter[str] = Counter()

    def __enter__(self) -> Self:
        from ray.util.metrics import Gauge, Histogram

        for metric in METRICS:
            text, tags = f"{metric.text} [{metric.unit}]", (JOB, *metric.tags)
            self._instruments[metric.name] = (
                Histogram(metric.name, text, boundaries=[*metric.boundaries], tag_keys=tags)
                if metric.boundaries
                else Gauge(metric.name, text, tag_keys=tags)
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._state is not None:
            self._emit(replace(self._state, ahead=0))  # What was not over then was given up.
            for phase in ("busy", "idle", "starting"):
                self._set(GANGS, 0, phase=phase)

    def trial(self, run: TrialRun) -> None:
        """See `Observer.trial`."""
        if not run.tuned:
            return
        self._lost[run.id] = run.attempts
        if histogram := run.details.get("parameter_server", {}).get("staleness"):
            self._all_pushes.subtract(self._pushes.get(run.id, {}))
            self._all_pushes.update(histogram)
            self._pushes[run.id] = dict(histogram)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """See `Observer.reports`; the search counts them."""

    def rung(self, cut: Cut) -> None:
        """See `Observer.rung`; the tally counts them."""

    def ledger(self, entries: Sequence[Entry]) -> None:
        """See `Observer.ledger`."""
        for entry in entries:
            histogram = {Kind.STARTING: STARTS, Kind.CHECKPOINTING: CHECKPOINTS}.get(entry.kind)
            if histogram is not None:
                seconds = entry.worker_seconds / entry.workers
                self._instruments[histogram.name].observe(seconds, tags={JOB: self._goal.job})

    def progress(self, state: JobState) -> None:
        """See `Observer.progress`."""
        self._state = state
        now = self._clock()
        if now - self._emitted >= EMIT_SECONDS:
            self._emitted = now
            self._emit(state)

    def _emit(self, state: JobState) -> None:
        tally, ledger = self._tally, state.ledger
        for status in get_args(TrialStatus):
            self._set(TRIALS, tally.statuses[status], state=status.lower())
        for number, (bracket, rungs) in enumerate(tally.kinds.items(), start=1):
            for resource, places in zip(bracket.rungs, rungs, strict=True):
                at = {"bracket": str(number), "rung": str(resource)}
                self._set(RUNGS, places.size, **at, state="places")
                self._set(RUNGS, places.reached, **at, state="reached")
                self._set(RUNGS, places.went_on, **at, state="went_on")
                self._set(RUNGS, places.stopped, **at, state="stopped")
        self._set(UNITS, state.trained + state.ahead, state="trained")
        self._set(UNITS, self._planned, state="planned")
        if tally.best is not None:
            self._set(BEST, tally.best_value, metric=self._goal.metric)
        for kind, worker_seconds in ledger.totals.items():
            self._set(BILLED, worker_seconds, kind=kind.value)
        self._set(BILLED, ledger.open, kind="open")
        self._set(GANGS, state.gangs_busy, phase="busy")
        self._set(GANGS, state.gangs_idle, phase="idle")
        self._set(GANGS, state.gangs_starting, phase="starting")
        self._set(FAILURES, tally.statuses["Failed"], kind="failed")
        self._set(FAILURES, tally.statuses["Diverged"], kind="diverged")
        self._set(FAILURES, self._lost.total(), kind="lost_workers")
        if self._all_pushes:
            for staleness, pushes in by_staleness(self._all_pushes).items():
                self._set(PUSHES, pushes, staleness=staleness)

    def _set(self, metric: Metric, value: float, /, **tags: str) -> None:
        self._instruments[metric.name].set(value, tags={JOB: self._goal.job, **tags})


def by_staleness(pushes: Mapping[str, int]) -> dict[str, int]:
    """Pushes by how stale they were, in the few classes that a tag may have.

    Args:
        pushes: how many there were by the number of updates between pull and push, as the record has them.
    """
    counts = dict.fromkeys(STALENESS, 0)
    for steps, count in pushes.items():
        counts[steps if steps in counts else "4-7" if int(steps) < 8 else "8+"] += count
    return counts
