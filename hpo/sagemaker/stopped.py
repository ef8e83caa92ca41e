"""Trials that a person stops while their job runs: checked, and put into its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hpo.record import JobRow, Store, TrialRow, is_training, status_and_reason
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedTrial:
    """A trial that was asked to stop.

    Args:
        job: its job's row as it was then.
        trial: its own.
    """

    job: JobRow
    trial: TrialRow

    def to_json(self) -> dict[str, Any]:
        """For programs, under the names of SageMaker's API where it has one."""
        return {
            "HyperParameterTuningJobName": self.job.name,
            "HyperParameterTuningJobStatus": status_and_reason(self.job)[0],
            "TrainingJobName": self.trial.trial_id,
            "Status": self.trial.status,
            "Resource": self.trial.resource,
        }


def stop_trial(store: Store, name: str, trial_id: str, by: str = "") -> StoppedTrial:
    """Asks for a trial to be stopped: its job's driver does so at the trial's next report, in whatever process it is.

    What it has found stays. A trial that is on no workers, as it waits, is stopped within seconds; where the job's
    driver has died, it is once the job is resumed.

    Args:
        store: the record.
        name: the job's.
        trial_id: the trial's.
        by: who asks; empty is whoever acts here, see `hpo.record.acting`.

    Raises:
        ConfigurationError: there is no such job or trial, or the trial has ended.
    """
    found: list[StoppedTrial] = []

    def check(job: JobRow, trial: TrialRow | None) -> None:
        if trial is None or trial.number < 0:
            names = [each.trial_id for each in store.trials(name) if each.number >= 0]
            where = did_you_mean(trial_id, names) or f"; look with: hpo trials {name}"
            raise ConfigurationError(f"job {name!r} has no trial {trial_id!r} that could be stopped{where}")
        _check_lives(job, trial)
        found.append(StoppedTrial(job=job, trial=trial))

    if is_training(store.job(name)):  # It could not go on from there.
        raise ConfigurationError(f"job {name!r} is a single training; to stop it: hpo stop {name}")
    store.stop_trial(name, trial_id, check, by)
    return found[0]


def _check_lives(job: JobRow, trial: TrialRow) -> None:
    if trial.ended_at is None and job.status != "Completed":
        return
    ended = f"trial {trial.trial_id!r} has ended: it is {trial.status} after {trial.resource} units"
    if trial.stopped:
        raise ConfigurationError(f"{ended}, stopped by {trial.stopped_by}; there is nothing left to stop")
    status = status_and_reason(job)[0]
    if status in ("Stopped", "Failed") and trial.status == "Stopped":
        raise ConfigurationError(
            f"{ended}, and job {job.name!r} is {status}; if it goes on once that runs again, stop it then: "
            f"hpo resume {job.name}"
        )
    raise ConfigurationError(
        f"{ended}; to stop the whole job: hpo stop {job.name}"
        if status in ("InProgress", "Stopping")
        else f"{ended}, and so has its job; there is nothing left to stop"
    )
