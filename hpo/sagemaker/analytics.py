"""A job's trials as a DataFrame, under the names that users of SageMaker know."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpo.cost import Tariff
from hpo.record import JobRow, Store, TrialRow, means, objective, repeats_of, when
from hpo.sagemaker.description import describe, describe_trial, training_job_status

if TYPE_CHECKING:
    import pandas


class HyperparameterTuningJobAnalytics:
    """Reads a job from the record, while it runs and after, from any process.

    Args:
        hyperparameter_tuning_job_name: the job.
        sagemaker_session: not used: no service is asked.
        store: database URL; None is the default store.
    """

    def __init__(
        self, hyperparameter_tuning_job_name: str, sagemaker_session: object = None, *, store: str | None = None
    ) -> None:
        self.name = hyperparameter_tuning_job_name
        self._url = store
        self._frame: pandas.DataFrame | None = None

    def dataframe(self, force_refresh: bool = False) -> pandas.DataFrame:
        """A row a trial, in the order in which they were suggested.

        Columns: one a tuned hyperparameter, with its Python type, empty where its condition is not met;
        TrainingJobName, TrainingJobStatus, FinalObjectiveValue, TrainingStartTime, TrainingEndTime,
        TrainingElapsedTimeSeconds; and beyond SageMaker's: Status (as Warmband says it, which has one more:
        Diverged), BestObjectiveValue, BestObjectiveResource, Resource (units trained), Bracket, BilledWorkerSeconds,
        BilledCost (where the job has prices), Checkpoint, FailureReason, Details (what happened beside the metrics, as
        JSON), Given ("point" or "added" where a person gave values).
        Where each configuration is trained several times also Configuration, its number, and MeanObjectiveValue.
        """
        if self._frame is None or force_refresh:
            import pandas

            job, trials, billed = self._load()
            rows = [_row(job, trial, billed[trial.trial_id]) for trial in trials]
            if repeats_of(job) > 1:
                mean = means(job, trials)
                for row, trial in zip(rows, trials, strict=True):
                    row["Configuration"] = trial.number // repeats_of(job)
                    row["MeanObjectiveValue"] = mean[trial.number]
            self._frame = pandas.DataFrame(rows, columns=None if rows else list(_row(job, _blank(job), 0.0)))
        return self._frame

    def curve(self, training_job_name: str) -> pandas.DataFrame:
        """A trial's whole curve: indexed by `step`, a column a metric, and `seconds` since its first report."""
        import pandas

        with Store(self._url) as store:
            reports = store.reports(self.name, training_job_name)
        rows = [{"step": r.step, **r.metrics, "seconds": r.at - reports[0].at} for r in reports]
        return pandas.DataFrame(rows).set_index("step") if rows else pandas.DataFrame()

    def export_csv(self, filename: str | Path) -> None:
        """Writes `dataframe()` to a file."""
        self.dataframe().to_csv(filename, index=False)

    def clear_cache(self) -> None:
        """Makes the next `dataframe()` read anew."""
        self._frame = None

    @property
    def tuning_ranges(self) -> dict[str, dict[str, Any]]:
        """The tuned ranges, by name, as in the Describe response."""
        ranges = self.description()["HyperParameterTuningJobConfig"]["ParameterRanges"]
        return {entry["Name"]: entry for kind in ranges.values() for entry in kind}

    def description(self, force_refresh: bool = False) -> dict[str, Any]:
        """The job, as `HyperparameterTuner.describe()` gives it; always read anew."""
        with Store(self._url) as store:
            return describe(store.job(self.name), store.trials(self.name))

    def training_job_summaries(self, force_refresh: bool = False) -> list[dict[str, Any]]:
        """The trials, in the form of the API's training jobs; always read anew."""
        job, trials, _ = self._load()
        return [describe_trial(job, trial) for trial in trials]

    def _repr_html_(self) -> str:
        """For notebooks: the job and its best trials; read anew."""
        from hpo.report import job_html

        return job_html(self.name, self._url)

    def _load(self) -> tuple[JobRow, list[TrialRow], dict[str, float]]:
        with Store(self._url) as store:
            billed: dict[str, float] = defaultdict(float)
            for (trial, _), seconds in store.billed(self.name).items():
                billed[trial] += seconds
            return store.job(self.name), tuned_trials(store, self.name), billed


def tuned_trials(store: Store, name: str) -> list[TrialRow]:
    """A job's trials without the un-tuned run beside them."""
    return [trial for trial in store.trials(name) if trial.number >= 0]


def _blank(job: JobRow) -> TrialRow:
    """A trial as it is before anything is known of it."""
    return TrialRow(job=job.name, trial_id="", number=0, hyperparameters={})


def _row(job: JobRow, trial: TrialRow, billed: float) -> dict[str, Any]:
    tariff = Tariff.of_spec(job.spec)
    tuned = dict.fromkeys(job.spec["hyperparameter_ranges"])  # A trial lacks those whose condition it does not meet.
    ended = trial.started_at is not None and trial.ended_at is not None
    return {
        **tuned,
        **trial.hyperparameters,
        "TrainingJobName": trial.trial_id,
        "TrainingJobStatus": training_job_status(trial),
        "FinalObjectiveValue": objective(job, trial),
        "TrainingStartTime": when(trial.started_at) if trial.started_at is not None else None,
        "TrainingEndTime": when(trial.ended_at) if trial.ended_at is not None else None,
        "TrainingElapsedTimeSeconds": (trial.ended_at or 0) - (trial.started_at or 0) if ended else None,
        "Status": trial.status,
        "BestObjectiveValue": trial.best_objective,
        "BestObjectiveResource": trial.best_resource,
        "Resource": trial.resource,
        "Bracket": trial.bracket,
        "BilledWorkerSeconds": billed,
        **({"BilledCost": tariff.of(billed)} if tariff else {}),
        "Checkpoint": trial.checkpoint,
        "FailureReason": trial.failure_reason,
        "Details": json.dumps(trial.details) if trial.details else "",
        "Given": trial.given_as,
        "StoppedBy": trial.stopped_by,
    }
