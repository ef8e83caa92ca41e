"""Base of all trackers: events of a job, passed on without holding the job up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from hpo.observers import Callback, JobEnd, JobStart, TrialEnd, TrialInfo
from hpo.record import encode
from hpo.trackers.outbox import Outbox
from trainers.extras import check_extra

if TYPE_CHECKING:
    from trainers.gangs import Report

CLOSE_SECONDS, LONGEST_CLOSE_SECONDS = 10.0, 30.0
"""Seconds that a job's end waits for unwritten events: for a tracker that writes nothing, and in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A trial reported, at so many unix seconds."""

    trial: TrialInfo
    report: Report
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A trial ended, at so many unix seconds."""

    trial: TrialInfo
    end: TrialEnd
    at: float


class Log(Protocol):
    """One job in a tracker. All calls come from one thread; they may block, and raise anything."""

    def reports(self, trial: TrialInfo, reports: Sequence[Reported]) -> None:
        """Some more of a trial's reports: each step once, rising."""

    def trial_end(self, trial: TrialInfo, finished: Finished) -> None:
        """A trial has ended; it may never have reported."""

    def job_end(self, job: JobEnd) -> None:
        """The job has ended, and no more trials end."""


class Tracker(Callback):
    """Logs jobs by a thread of its own.

    A tracker that fails, hangs or falls behind is left out from then on, with one warning, and the job goes on.

    Raises:
        ConfigurationError: the package that it needs is not installed.
    """

    name: ClassVar[str]
    """Its name for people."""

    package: ClassVar[str]
    """The package to install, which is also the name of Warmband's extra."""

    def __init__(self) -> None:
        check_extra(self.name, self.package)
        self._outbox: Outbox | None = None

    def open(self, job: JobStart) -> Log:
        """Begins to log a job, in the writer's thread."""
        raise NotImplementedError

    def on_job_start(self, job: JobStart) -> None:
        """See `Callback`."""
        self._outbox = Outbox(self.name, _Writing(self.open).write)
        self._outbox.put(job)

    def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
        """See `Callback`."""
        self._put(Reported(trial=trial, report=report, at=time.time()))

    def on_trial_end(self, trial: TrialInfo, end: TrialEnd) -> None:
        """See `Callback`."""
        self._put(Finished(trial=trial, end=end, at=time.time()))

    def on_job_end(self, job: JobEnd) -> None:
        """See `Callback`."""
        self._put(job)
        if self._outbox is not None:
            self._outbox.close(CLOSE_SECONDS, LONGEST_CLOSE_SECONDS)

    def _put(self, event: Any) -> None:
        if self._outbox is not None:
            self._outbox.put(event)


class _Writing:
    """One job's events written to its log, by the thread of its outbox.

    Args:
        open: begins the log.
    """

    def __init__(self, open: Callable[[JobStart], Log]) -> None:
        self._open = open
        self._log: Log | None = None

    def write(self, batch: list[Any]) -> Iterator[int]:
        """Writes a batch, the reports of a trial that came together at once."""
        together: dict[str, list[Reported]] = {}
        for event in batch:
            if isinstance(event, Reported):
                together.setdefault(event.trial.id, []).append(event)
                continue
            for trial_id in [event.trial.id] if isinstance(event, Finished) else list(together):
                yield self._reports(together.pop(trial_id, []))
            self._other(event)
            yield 1
        for reports in together.values():
            yield self._reports(reports)

    def _other(self, event: JobStart | Finished | JobEnd) -> None:
        if isinstance(event, JobStart):
            self._log = self._open(event)
        elif isinstance(event, Finished):
            self._begun.trial_end(event.trial, event)
        else:
            self._begun.job_end(event)

    def _reports(self, reports: list[Reported]) -> int:
        if reports:
            self._begun.reports(reports[0].trial, reports)
        return len(reports)

    @property
    def _begun(self) -> Log:
        assert self._log is not None, "a job's start is its first event"
        return self._log


def job_numbers(job: JobEnd) -> dict[str, float]:
    """A job's figures by name: the best objective, billed worker-seconds by kind, wall time, money, units.

    Where configurations are trained several times, the best is a mean, whose standard error stands beside it, and
    `best_trial_value` that of the best trial of that configuration.
    """
    summary = job.summary
    best, untuned, cost = (summary.get(key) or {} for key in ("best", "untuned", "cost"))
    billed: dict[str, float] = summary.get("worker_seconds") or {}
    repeats = best.get("repeats") or {}
    numbers = {
        "best": repeats.get("mean", best.get("value")),
        "best_standard_error": repeats.get("standard_error"),
        "best_trial_value": best.get("value") if repeats else None,
        "best_resource": best.get("resource"),
        "untuned": untuned.get("value"),
        "worker_seconds": sum(billed.values()) if billed else None,
        **{f"worker_seconds_{kind}": seconds for kind, seconds in billed.items()},
        "wall_seconds": summary.get("wall_seconds"),
        "cost": cost.get("total"),
        "resource_used": summary.get("resource_used"),
    }
    return {name: float(value) for name, value in numbers.items() if value is not None}


def job_words(job: JobEnd) -> dict[str, str]:
    """How a job ended, by name: status, reason, the best trial and its hyperparameters, the whole summary as JSON."""
    best = job.summary.get("best") or {}
    return {
        "status": job.status,
        "reason": job.reason,
        "best_trial": best.get("trial", ""),
        "best_hyperparameters": json.dumps(encode(best["hyperparameters"])) if best else "",
        "summary": json.dumps(encode(job.summary)),
    }


def trial_numbers(end: TrialEnd) -> dict[str, float]:
    """A trial's figures by name."""
    numbers = {
        "objective": end.objective,
        "best_objective": end.best_objective,
        "resource": end.resource,
        "worker_seconds": end.worker_seconds,
    }
    return {name: float(value) for name, value in numbers.items() if value is not None}
