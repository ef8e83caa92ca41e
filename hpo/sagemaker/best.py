"""The trial that a user asks for: the best of a job, or one by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hpo.jobs import trial_name
from hpo.record import JobRow, Store, TrialRow, best_trial, overall_best
from hpo.sagemaker.analytics import tuned_trials
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError, NotReadyError


def best_of(store: str | None, job: str) -> TrialRow:
    """The best trial of a job.

    Args:
        store: database URL of the record; None is the default one.
        job: its name.

    Raises:
        NotReadyError: none has reported a finite objective.
    """
    return _first(best_trial, store, job)


def overall_best_of(store: str | None, job: str) -> TrialRow:
    """The best trial of a job and of the parents whose values count as its own; as `best_of`."""
    return _first(overall_best, store, job)


def _first(choice: Callable[[JobRow, Sequence[TrialRow]], TrialRow | None], store: str | None, job: str) -> TrialRow:
    with Store(store) as record:
        best = choice(record.job(job), tuned_trials(record, job))
    if best is None:
        raise NotReadyError(f"Best training job not available for tuning job: {job}")
    return best


def chosen_of(store: str | None, job: str, asked: str | Mapping[str, object] | None) -> TrialRow:
    """The trial of a job that somebody asks for.

    Args:
        store: database URL of the record; None is the default one.
        job: its name.
        asked: the trial's name, or a dict that has it as "TrainingJobName"; None for the best trial.

    Raises:
        ConfigurationError: the job has no such trial.
        NotReadyError: none has reported a finite objective.
    """
    name = trial_name(asked)
    if not name:
        return best_of(store, job)
    with Store(store) as record:
        trials = {trial.trial_id: trial for trial in tuned_trials(record, job)}
    if name not in trials:
        raise ConfigurationError(f"job {job} has no trial {name!r}{did_you_mean(name, trials)}")
    return trials[name]
