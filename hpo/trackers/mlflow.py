"""MLflow: a run for the job with a nested run for each trial, through MLflow's own client."""

from __future__ import annotations

import json
import logging
import posixpath
import re
import time
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from hpo.observers import JobEnd, JobStart, TrialInfo
from hpo.record import encode
from hpo.text import masked
from hpo.trackers.tracker import Finished, Log, Reported, Tracker, job_numbers, job_words, trial_numbers
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from mlflow import MlflowClient

MOST_METRICS, MOST_PARAMS, LONGEST_KEY, LONGEST_PARAM, LONGEST_TAG = 1000, 100, 250, 6000, 5000
"""What MLflow takes in one batch, and as one key or value."""

STATUS = {"Completed": "FINISHED", "Stopped": "KILLED", "Diverged": "FAILED", "Failed": "FAILED"}


_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,254}")


class MLflow(Tracker):
    """Logs to an MLflow server or store: a parent run for the job, and a child run for each trial.

    A trial's run has status FINISHED where it ran to its end, KILLED where it was stopped before, and FAILED where it
    failed or diverged; the tag `warmband.status` has Warmband's own word.

    Args:
        tracking_uri: the server, or a database such as "sqlite:///mlflow.db"; None is MLflow's own choice, which is
            MLFLOW_TRACKING_URI where that is set. Name and password are better in MLFLOW_TRACKING_USERNAME and
            MLFLOW_TRACKING_PASSWORD.
        experiment: its name; made where it is not there.
        register_as: what the registry calls the best trial's model, which becomes a version there at the job's end;
            the job's process waits for that. None registers none.

    Raises:
        ConfigurationError: mlflow is not installed, or `register_as` is no name of a model.
    """

    name = "MLflow"
    package = "mlflow"

    def __init__(
        self, tracking_uri: str | None = None, experiment: str = "warmband", register_as: str | None = None
    ) -> None:
        super().__init__()
        if register_as is not None:
            check_model_name(register_as, "register_as")
        self.tracking_uri, self.experiment, self.register_as = tracking_uri, experiment, register_as

    def __repr__(self) -> str:
        uri = self.tracking_uri and masked(self.tracking_uri)
        named = f", register_as={self.register_as!r}" if self.register_as else ""
        return f"MLflow(tracking_uri={uri!r}, experiment={self.experiment!r}{named})"

    def open(self, job: JobStart) -> Log:
        """See `Tracker`."""
        from mlflow import MlflowClient

        for talkative in ("alembic", "mlflow.store.db.utils"):  # A page of lines where a database is new.
            logging.getLogger(talkative).setLevel(logging.WARNING)
        client = MlflowClient(tracking_uri=self.tracking_uri)
        experiment = client.get_experiment_by_name(self.experiment)
        return _Runs(client, experiment.experiment_id if experiment else client.create_experiment(self.experiment), job)


class _Runs:
    """A job's runs."""

    def __init__(self, client: MlflowClient, experiment_id: str, job: JobStart) -> None:
        self._client, self._experiment_id, self._job = client, experiment_id, job
        self._keys = Keys()
        self._runs: dict[str, str] = {}
        tags = {
            "warmband.metric": job.metric,
            "warmband.objective_type": job.objective_type,
            "warmband.seed": str(job.seed),
            **{f"warmband.range.{name}": json.dumps(bounds) for name, bounds in job.ranges.items()},
            **{tag["Key"]: str(tag["Value"]) for tag in job.tags if {"Key", "Value"} <= tag.keys()},
        }
        self._parent = self._begun(job.name, tags, job.hyperparameters, time.time())

    def reports(self, trial: TrialInfo, reports: Sequence[Reported]) -> None:
        from mlflow.entities import Metric

        run = self._run(trial, reports[0].at)
        metrics = [
            Metric(self._keys.key(name), float(value), int(each.at * 1000), each.report.step)
            for each in reports
            for name, value in each.report.metrics.items()
            if isinstance(value, Real)
        ]
        for start in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(run, metrics=metrics[start : start + MOST_METRICS])

    def trial_end(self, trial: TrialInfo, finished: Finished) -> None:
        end = finished.end
        run = self._run(trial, finished.at)
        tags = {"status": end.status, "failure": end.failure, "checkpoint": end.checkpoint}
        numbers = {f"trial/{name}": value for name, value in trial_numbers(end).items()}
        self._ended(run, numbers, tags, end.resource, end.status, finished.at)
        self._runs[trial.id] = ""

    def job_end(self, job: JobEnd) -> None:
        now = time.time()
        for run in filter(None, self._runs.values()):
            self._ended(run, {}, {"status": "Stopped"}, 0, "Stopped", now)
        numbers = {f"job/{name}": value for name, value in job_numbers(job).items()}
        self._ended(self._parent, numbers, job_words(job), 0, job.status, now)

    def _run(self, trial: TrialInfo, at: float) -> str:
        """The id of a trial's run, which is begun where there is none."""
        if trial.id not in self._runs:
            tags = {"mlflow.parentRunId": self._parent, "warmband.job": self._job.name}
            if trial.bracket is not None:
                tags["warmband.bracket"] = str(trial.bracket)
            values = {**self._job.hyperparameters, **trial.hyperparameters}
            self._runs[trial.id] = self._begun(trial.id, tags, values, at)
        return self._runs[trial.id]

    def _begun(self, name: str, tags: Mapping[str, str], values: Mapping[str, Any], at: float) -> str:
        from mlflow.entities import Param

        labels = {self._keys.key(key): value[:LONGEST_TAG] for key, value in tags.items()}
        begun = self._client.create_run(self._experiment_id, start_time=int(at * 1000), tags=labels, run_name=name)
        run: str = begun.info.run_id
        params = [Param(self._keys.key(key), text(value)) for key, value in values.items()]
        for start in range(0, len(params), MOST_PARAMS):
            self._client.log_batch(run, params=params[start : start + MOST_PARAMS])
        return run

    def _ended(
        self, run: str, numbers: Mapping[str, float], tags: Mapping[str, str], step: int, status: str, at: float
    ) -> None:
        from mlflow.entities import Metric, RunTag

        metrics = [Metric(name, value, int(at * 1000), step) for name, value in numbers.items()]
        labels = [RunTag(f"warmband.{name}", value[:LONGEST_TAG]) for name, value in tags.items() if value]
        self._client.log_batch(run, metrics=metrics, tags=labels)
        self._client.set_terminated(run, STATUS[status], end_time=int(at * 1000))


class Keys:
    """Names as MLflow takes them: of letters, digits and `_-. :/`, at most 250, and no path that could be shorter."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def key(self, name: str) -> str:
        """The same key for the same name, and another for any other."""
        if name not in self._keys:
            plain = re.sub(r"[^\w.\- :/]", "_", name).strip("/")[:LONGEST_KEY]
            shorter = posixpath.normpath(plain) if plain else "_"
            plain = shorter.replace("..", "_") if shorter.startswith(".") else shorter
            plain = "_" if plain == "." else plain
            taken, key, number = set(self._keys.values()), plain, 2
            while key in taken:
                ending = f"_{number}"
                key, number = plain[: LONGEST_KEY - len(ending)] + ending, number + 1
            self._keys[name] = key
        return self._keys[name]


def text(value: Any) -> str:
    """A hyperparameter as text: text as it is, anything else as JSON; cut where it is longer than MLflow takes."""
    words = value if isinstance(value, str) else json.dumps(encode(value))
    return words if len(words) <= LONGEST_PARAM else f"{words[: LONGEST_PARAM - 4]} ..."


def check_model_name(name: Any, field: str) -> None:
    """Checks what a registry is to call a model.

    Args:
        name: that is given.
        field: what errors call it.

    Raises:
        ConfigurationError: it is no name.
    """
    if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{field} is {name!r}; give at most 255 letters, digits, hyphens, underscores, dots and blanks"
        )
