"""A job's log: a line of JSON for each event, among the logs of its Ray for `ray logs` and the dashboard."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import ray

from hpo.cost import Entry
from hpo.search import JobState, Recall, Search, TrialRun, status_of
from hpo.strategies import Cut
from hpo.text import count, first_line
from trainers.errors import in_words
from trainers.gangs import Report

logger = logging.getLogger(__name__)

PACKAGES = ("hpo", "trainers")
"""Whose own log records go into the job's log too."""


class JobLog:
    """Writes down what happens in a job; an `Observer`, and the block in which the job's Ray is up.

    Nothing is printed, and no logger is configured for it. What a trial's own code logs is elsewhere: Ray Train keeps
    it as JSON too, with the job, gang and trial that `trainers.gangs.worker.log_context` adds.

    Args:
        search: what the job carries out.
        recall: what an earlier run of the job has written down already, and is not written again.
    """

    def __init__(self, search: Search, recall: Recall) -> None:
        self._search = search
        self._recall = recall
        self._handler: logging.Handler | None = None
        self._gangs = (0, 0)
        self._stopped = ""

    def __enter__(self) -> Self:
        if (folder := log_folder()) is not None:
            try:
                self._handler = logging.FileHandler(folder / file_name(self._search.name))
            except OSError as error:  # It may be another user's; a job needs no log.
                logger.warning("job %s is not logged: %s", self._search.name, error)
        if self._handler is not None:
            self._handler.setFormatter(JsonLines(self._search.name))
            for package in PACKAGES:
                logging.getLogger(package).addHandler(self._handler)
        search = self._search
        self._tell(
            "job_starts", f"{search.max_jobs} trials of {search.max_resource} units at most", metric=search.metric
        )
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        reason = in_words(error) if error else self._stopped
        self._tell("job_ends", reason or "every trial has ended", reason=reason)
        if self._handler is not None:
            for package in PACKAGES:
                logging.getLogger(package).removeHandler(self._handler)
            self._handler.close()

    def trial(self, run: TrialRun) -> None:
        """See `Observer.trial`."""
        if not run.trial.is_finished() or self._recall.ended_at(run) is not None:
            return
        about: dict[str, Any] = {"status": status_of(run), "resource": run.resource, "objective": run.value}
        if run.tuned:
            about |= {"bracket": run.bracket, "hyperparameters": run.hyperparameters}
        why = run.failure or run.diverged
        value = f"{self._search.metric} {run.value:.5f}" if math.isfinite(run.value) else "without a value"
        words = first_line(why) if why else value
        text = f"{run.id}: {about['status'].lower()} after {count(run.resource, 'unit')}, {words}"
        level = logging.WARNING if why else logging.INFO
        self._tell("trial_ends", text, level, trial=run.id, reason=why, **about)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """See `Observer.reports`; the record has them."""

    def rung(self, cut: Cut) -> None:
        """See `Observer.rung`."""
        went_on, stopped = list(cut.went_on), list(cut.stopped)
        if all(self._recall.reached(trial, cut.resource) for trial in (*went_on, *stopped)):
            return
        where = f"bracket {cut.bracket + 1} at {count(cut.resource, 'unit')}"
        text = f"{where}: {len(went_on)} went on, {len(stopped)} stopped"
        self._tell("rung", text, bracket=cut.bracket, resource=cut.resource, went_on=went_on, stopped=stopped)

    def ledger(self, entries: Sequence[Entry]) -> None:
        """See `Observer.ledger`; the record has them."""

    def progress(self, state: JobState) -> None:
        """See `Observer.progress`."""
        gangs = (state.gangs_up, state.gangs_starting)
        if gangs != self._gangs:
            self._gangs = gangs
            self._tell("gangs", f"{count(gangs[0], 'gang')} up, {gangs[1]} starting", up=gangs[0], starting=gangs[1])
        if state.stopped != self._stopped:
            self._stopped = state.stopped
            self._tell("job_stops", self._stopped, reason=self._stopped)

    def _tell(self, event: str, text: str, level: int = logging.INFO, **about: Any) -> None:
        if self._handler is not None:
            words = {"levelno": level, "levelname": logging.getLevelName(level), "msg": text, "created": time.time()}
            self._handler.handle(logging.makeLogRecord({**words, "about": {"event": event, **about}}))


class JsonLines(logging.Formatter):
    """A record as a line of JSON, with the job's name in it.

    Args:
        job: the job's name.
    """

    def __init__(self, job: str) -> None:
        super().__init__()
        self._job = job

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        line = {
            "asctime": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "levelname": record.levelname,
            "message": record.getMessage(),
            "tuning_job": self._job,
            **getattr(record, "about", {"event": "log", "name": record.name}),
        }
        if record.exc_info:
            line["exc_text"] = self.formatException(record.exc_info)
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in line.items()}
        return json.dumps(finite, default=str)


def file_name(job: str) -> str:
    """The name of a job's log among Ray's logs."""
    return f"warmband-{job}.log"


def log_folder() -> Path | None:
    """Where Ray keeps the logs of this process's node; None if that cannot be told."""
    here = ray.get_runtime_context().get_node_id()
    sockets = [node["RayletSocketName"] for node in ray.nodes() if node["NodeID"] == here]
    folder = Path(sockets[0]).parent.parent / "logs" if sockets else Path()
    return folder if sockets and folder.is_dir() else None
