"""Snapshots of jobs from the record: all of one job, or a line for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpo.cost import Tariff
from hpo.record import (
    TRAINING,
    UNTUNED,
    ActRow,
    AdditionRow,
    JobRow,
    JobView,
    Store,
    Totals,
    TrialRow,
    is_away,
    is_training,
    repeats_of,
    split,
    stops_in,
)
from hpo.sagemaker.description import counters, describe, describe_trial
from trainers.errors import WarmbandError


@dataclass(frozen=True, kw_only=True)
class Snapshot(JobView):
    """One job of the record.

    Args:
        job: see `JobView`.
        trials: see `JobView`.
        untuned: see `JobView`.
        seconds: billed worker-seconds, by kind.
        trial_seconds: the same by trial.
        waiting: values that persons gave for trials, and no trial has taken yet.
        acts: what persons did to it, by time.
    """

    seconds: dict[str, float]
    trial_seconds: dict[str, float]
    waiting: Sequence[AdditionRow] = ()
    acts: Sequence[ActRow] = ()

    @classmethod
    def of(cls, store: Store, job: JobRow) -> Snapshot:
        """The job as it is now."""
        seconds: dict[str, float] = defaultdict(float)
        by_trial: dict[str, float] = defaultdict(float)
        for (trial, kind), billed in store.billed(job.name).items():
            seconds[kind] += billed
            by_trial[trial] += billed
        additions, (trials, untuned) = store.additions(job.name), split(store.trials(job.name))
        taken = {trial.given for trial in trials}
        waiting = [addition for addition in additions if addition.id not in taken]
        return cls(
            job=job,
            trials=trials,
            untuned=untuned,
            seconds=dict(seconds),
            trial_seconds=dict(by_trial),
            waiting=waiting,
            acts=store.acts(job.name),
        )

    @property
    def to_stop(self) -> dict[str, str]:
        """Trials that are to be stopped and have not ended yet, each with who asked."""
        live = {trial.trial_id for trial in self.trials if trial.ended_at is None}
        return {trial: by for trial, by in stops_in(self.acts).items() if trial in live}

    @property
    def done(self) -> int:
        """How many trials have ended."""
        return sum(trial.ended_at is not None for trial in self.trials)

    @property
    def worker_seconds(self) -> float:
        """Billed worker-seconds in all."""
        return sum(self.seconds.values())

    @property
    def tariff(self) -> Tariff | None:
        """The price of its workers; None without prices."""
        return Tariff.of_spec(self.job.spec)

    def _mean(self, trial: TrialRow) -> dict[str, Any]:
        return {
            "MeanObjectiveValue": self.means.get(trial.number),
            "MeanObjectiveStandardError": self.mean_error(trial),
        }

    def trial_summary(self, trial: TrialRow) -> dict[str, Any]:
        """A trial under the names of SageMaker's API; hyperparameters keep their types beside."""
        return {
            **describe_trial(self.job, trial),
            "Status": trial.status,
            "HyperParameters": trial.hyperparameters,
            **(self._mean(trial) if self.means else {}),
            "Bracket": trial.bracket,
            "Resource": trial.resource,
            "Parent": trial.parent,
            "ParentResource": trial.parent_resource,
            "Replaces": trial.replaces,
            **_billed(self.tariff, self.trial_seconds.get(trial.trial_id, 0.0)),
            "Checkpoint": trial.checkpoint,
            "Traceback": trial.traceback,
        }

    def trial_summaries(self) -> list[dict[str, Any]]:
        """Its trials, best first, each as `trial_summary` has it."""
        return [self.trial_summary(trial) for trial in self.ranked()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One job of the record as a line of a list.

    Args:
        job: its row.
        totals: what its trials and bills come to.
    """

    job: JobRow
    totals: Totals

    @property
    def kind(self) -> str:
        """A tuning job, or a single training."""
        return TRAINING if is_training(self.job) else "tuning"

    @property
    def planned(self) -> int:
        """See `JobView.planned`."""
        return int(self.job.spec["max_jobs"]) + self.totals.forks

    @property
    def tariff(self) -> Tariff | None:
        """The price of its workers; None without prices."""
        return Tariff.of_spec(self.job.spec)

    def summary(self) -> dict[str, Any]:
        """For a list of jobs, under the names of SageMaker's API where it has one."""
        described = {**describe(self.job, []), **counters(self.totals.trials)}
        kept = (
            "HyperParameterTuningJobName",
            "HyperParameterTuningJobStatus",
            "CreationTime",
            "FailureReason",
            "HyperParameterTuningEndTime",
            "TrainingJobStatusCounters",
            "ObjectiveStatusCounters",
        )
        return {
            **{key: described[key] for key in kept if key in described},
            "Kind": self.kind,
            "Strategy": self.job.spec["strategy"],
            "ResourceLimits": described["HyperParameterTuningJobConfig"]["ResourceLimits"],
            "ObjectiveMetricName": self.job.spec["objective_metric_name"],
            "BestObjectiveValue": self.totals.best,
            **_billed(self.tariff, self.totals.worker_seconds),
            "Owner": self.job.owner,
            "Driver": described["Summary"]["driver"],
        }


def overviews(store: Store, jobs: Sequence[JobRow] | None = None) -> list[Overview]:
    """Jobs as lines of a list.

    Args:
        store: the record.
        jobs: None is every one, newest first.
    """
    jobs = store.jobs() if jobs is None else jobs
    totals = store.totals(jobs)
    for job in jobs:
        # The database sums up trials. Configurations are compared by their means, and with the un-tuned run.
        if repeats_of(job) > 1 or (job.summary.get("best") or {}).get("trial") == UNTUNED:
            trials, untuned = split(store.trials(job.name))
            view = JobView(job=job, trials=trials, untuned=untuned)
            totals[job.name] = replace(totals[job.name], best=view.score(view.result) if view.result else None)
    return [Overview(job=job, totals=totals[job.name]) for job in jobs]


MALFORMED = (WarmbandError, AttributeError, LookupError, TypeError, ValueError, OverflowError)
"""The errors that reading a malformed row of the record raises."""


def readable_overviews(store: Store) -> tuple[list[Overview], list[str]]:
    """The jobs as lines of a list, newest first, and the names of those whose rows cannot be read.

    Raises:
        WarmbandError: the record cannot be read.
    """
    try:
        return [_checked(each) for each in overviews(store)], []
    except MALFORMED:
        found, malformed = [], []
        for name, mark in store.marks().items():
            try:
                found.append((mark.created_at, _checked(overviews(store, [store.job(name)])[0])))
            except MALFORMED as error:
                if is_away(error):
                    raise
                malformed.append(name)
        return [each for _, each in sorted(found, key=lambda pair: pair[0], reverse=True)], malformed


def _checked(overview: Overview) -> Overview:
    """A line, whose values are read here, so that one that cannot be is an error here."""
    spec = overview.job.spec
    _ = overview.kind, overview.planned, overview.tariff, spec["strategy"] + "", spec["objective_metric_name"]
    _ = overview.job.now - overview.job.created_at, overview.job.driver.get("host"), overview.job.status + ""
    return overview


def _billed(tariff: Tariff | None, worker_seconds: float) -> dict[str, Any]:
    cost = {"BilledCost": tariff.of(worker_seconds), "Currency": tariff.currency} if tariff else {}
    return {"BilledWorkerSeconds": worker_seconds, **cost}
