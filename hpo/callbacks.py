"""Users' own code, called while a job runs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hpo.controller import Controller
from hpo.hyperband import Cut
from hpo.search import UNTUNED, TrialRun
from trainers.assignment import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialInfo:
    """What a callback is told of a trial.

    Args:
        id: its name.
        number: its place in the order of suggestion, from 0.
        hyperparameters: the tuned values.
        bracket: index of its bracket in the plan; None where the strategy has none.
    """

    id: str
    number: int
    hyperparameters: dict[str, Any]
    bracket: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """What a callback is told when a job has ended.

    Args:
        name: the job's.
        status: "Completed", "Failed" or "Stopped".
        reason: why it did not run to its plan's end; empty if it did.
        summary: as in `describe()["Summary"]`; empty where the job could not be run.
    """

    name: str
    status: str
    reason: str
    summary: dict[str, Any]


class Callback:
    """Override what you need. Calls come from the job's own loop, one after another: what takes long holds the job up.

    An exception is printed, once for each different one, and the job goes on.
    """

    def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
        """A trial reported a unit of resource: each step once, rising, when its rung is done or once a second."""

    def on_rung(self, cut: Cut) -> None:
        """All trials of a rung are in: which go on, and which are stopped."""

    def on_job_end(self, job: JobEnd) -> None:
        """The job has ended and is recorded; its gangs are closed."""


class Callbacks:
    """Calls users' callbacks as the job's watcher.

    Args:
        callbacks: called in this order.
        notify: is told of their exceptions.
    """

    def __init__(self, callbacks: Sequence[Callback], notify: Callable[[str], None]) -> None:
        self._callbacks = callbacks
        self._notify = notify
        self._steps: dict[str, int] = {}
        self._told: set[tuple[str, str]] = set()

    def trial(self, run: TrialRun) -> None:
        """Forgets a trial that has ended."""
        if run.ended_at is not None:
            self._steps.pop(run.id, None)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Hands on each step once: what came while a trial was served comes again when it is done."""
        if run.id == UNTUNED or not self._callbacks:
            return
        info = TrialInfo(id=run.id, number=run.number, hyperparameters=dict(run.hyperparameters), bracket=run.bracket)
        for report in reports:
            if report.step > self._steps.get(run.id, 0):
                self._steps[run.id] = report.step
                self._call("on_trial_report", info, report)

    def rung(self, cut: Cut) -> None:
        """Hands it on."""
        self._call("on_rung", cut)

    def progress(self, controller: Controller) -> None:
        """Nothing that callbacks are told."""

    def job_end(self, job: JobEnd) -> None:
        """Hands it on."""
        self._call("on_job_end", job)

    def _call(self, method: str, *arguments: Any) -> None:
        for callback in self._callbacks:
            try:
                getattr(callback, method)(*arguments)
            except Exception as error:
                where = f"{type(callback).__name__}.{method}"
                if (where, repr(error)) not in self._told:
                    self._told.add((where, repr(error)))
                    self._notify(f"warning: {where} raised, and the job goes on\n{traceback.format_exc().rstrip()}")
