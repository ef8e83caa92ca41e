"""The trial that a user asks for: the best of a job, or one by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hpo.jobs import trial_name
from hpo.record import JobView, Store, TrialRow, split
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError, NotReadyError


def best_of(store: str | None, job: str) -> TrialRow:
    """Return the run that a job comes to: its best trial, or its un-tuned run if that is better.

    Args:
        store: database URL of the record; None is the default one.
        job: its name.

    Raises:
        NotReadyError: none has reported a finite objective.
    """
    return _first(lambda view: view.result, store, job)


def overall_best_of(store: str | None, job: str) -> TrialRow:
    """Return the better of a job's result and of the best trial of the parents whose values count as its own."""
    return _first(lambda view: view.overall_best, store, job)


def _first(choice: Callable[[JobView], TrialRow | None], store: str | None, job: str) -> TrialRow:
    with Store(store) as record:
        trials, untuned = split(record.trials(job))
        best = choice(JobView(job=record.job(job), trials=trials, untuned=untuned))
    if best is None:
        raise NotReadyError(f"Best training job not available for tuning job: {job}")
    return best


def chosen_of(store: str | None, job: str, asked: str | Mapping[str, object] | None) -> TrialRow:
    """Return the run of a job that somebody asks for.

    Args:
        store: database URL of the record; None is the default one.
        job: its name.
        asked: a trial's name, "untuned" for the un-tuned run, or a dict that has it as "TrainingJobName"; None for what
            `best_of` returns.

    Raises:
        ConfigurationError: the job has no such trial.
        NotReadyError: none has reported a finite objective.
    """
    name = trial_name(asked)
    if not name:
        return best_of(store, job)
    with Store(store) as record:
        trials = {trial.trial_id: trial for trial in record.trials(job)}
    if name not in trials:
        raise ConfigurationError(f"job {job} has no trial {name!r}{did_you_mean(name, trials)}")
    return trials[name]
