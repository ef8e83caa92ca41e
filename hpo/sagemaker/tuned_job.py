"""A tuning job that has begun, here or in another process, with the methods of SageMaker's SDK."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console

from hpo.cost import Tariff
from hpo.jobs import (
    SETTINGS,
    JobSettings,
    TuningJob,
    attached_code,
    check_not_there_yet,
    declared,
    dropped,
    how_to_resume,
)
from hpo.observers import show_summary
from hpo.record import JobRow, Store, is_training, status_and_reason
from hpo.sagemaker.added import add_trial
from hpo.sagemaker.analytics import HyperparameterTuningJobAnalytics
from hpo.sagemaker.best import best_of, chosen_of, overall_best_of
from hpo.sagemaker.description import describe
from hpo.sagemaker.having_model import HasModel
from hpo.sagemaker.stopped import stop_trial
from hpo.strategies import Plan
from hpo.text import printer
from trainers.errors import ConfigurationError, WarmbandError
from trainers.trainer import Trainer

_LOOK_SECONDS = 1.0


class TunedJob(HasModel):
    """A job by its name, and what it is made with: each setting is an attribute, which may be changed before a fit.

    Args:
        settings: what it is made with.
        store: database URL of the record; None is the default one.
        console: where its end is printed.
    """

    _planned: Plan | None = None
    """The brackets of the job that it is attached to."""

    def __init__(self, settings: JobSettings, store: str | None, console: Console) -> None:
        self.settings = settings
        self.latest_tuning_job: TuningJob | None = None
        self._store = store
        self._console, self._say = console, printer(console)
        self._allowed = frozenset(settings.code().values())
        """The code that the job's record may name where this process goes on with it."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The settings, by name."""

    @property
    def settings(self) -> JobSettings:
        """The settings of its jobs, as its attributes have them now.

        Raises:
            ConfigurationError: an attribute was given a value that is wrong, or that does not go with the others.
        """
        now = vars(self)
        changes = {name: now[name] for name in _NAMES if now[name] is not self._settings.value(name)}
        if changes:
            before = self._settings.code().values()
            self.settings = self._settings.changed(**changes)
            self._allowed |= {*self._settings.code().values()} - {*before}
        return self._settings

    @settings.setter
    def settings(self, settings: JobSettings) -> None:
        self._settings = settings
        vars(self).update({name: settings.value(name) for name in _NAMES})

    @property
    def tariff(self) -> Tariff | None:
        """The price of a worker; None without prices."""
        return self.settings.tariff

    @classmethod
    def attach(
        cls,
        tuning_job_name: str,
        sagemaker_session: object = None,
        job_details: None = None,
        estimator_cls: None = None,
        *,
        store: str | None = None,
        allow_code: bool = False,
    ) -> Self:
        """A tuner with everything that the job's was made with, in this process or another, while it runs or after.

        Args:
            tuning_job_name: the job.
            sagemaker_session: not used: no service is asked.
            job_details: must stay None: what the job was made with comes out of the record.
            estimator_cls: must stay None, as well.
            store: database URL of the record; None is the default one.
            allow_code: import the Python code that the record names. A training function is needed to train, as by
                `resume`, not to look at the job or to load its models; a trainer or a strategy of your own is needed
                for that, too.

        Raises:
            ConfigurationError: the record has no such job, or its trainer or strategy is a class of a user's own, and
                that is not allowed.
        """
        check_not_there_yet(job_details=job_details, estimator_cls=estimator_cls)
        with Store(store) as opened:
            job = opened.job(tuning_job_name)
        if is_training(job):
            raise ConfigurationError(f"job {tuning_job_name!r} is a single training; attach to it with hpo.TrainingJob")
        allowed = attached_code(job.spec, tuning_job_name, allow_code=allow_code)
        settings = JobSettings.of(job, allow_code=allow_code)
        tuner = cls.__new__(cls)
        tuner._planned = settings.planned  # They may have been grown: no strategy is asked for so many at once.
        tuner.__init__(**settings.arguments(), store=store)  # type: ignore[misc]
        tuner._allowed = tuner._allowed | allowed if allow_code else allowed
        tuner.latest_tuning_job = TuningJob(name=tuning_job_name)
        return tuner

    def wait(self) -> None:
        """Waits until the job has ended, in whatever process, and prints what it came to.

        Raises:
            WarmbandError: it ended as Failed.
        """
        while True:
            job = self._job()
            status, reason = status_and_reason(job)
            if status in ("Completed", "Failed", "Stopped"):
                break
            time.sleep(_LOOK_SECONDS)
        if job.summary.get("wall_seconds") is not None:
            stopped = status == "Stopped"
            resume = how_to_resume(job.name, job.spec, self._store, reason=reason) if stopped else ""
            summary = {**job.summary, "reason": reason}
            self._console.print(
                show_summary(job.name, status, self.settings.objective_metric_name, summary, resume=resume)
            )
        if status == "Failed":
            raise WarmbandError(f"tuning job {job.name} failed: {reason}")

    def add_trial(self, hyperparameters: Mapping[str, Any]) -> None:
        """Gives values for a trial of the job, from any process: the next that is suggested takes them.

        The trial takes a place of `max_jobs`. Which one it is, is recorded, so that a job that is resumed has it again.

        Args:
            hyperparameters: the values, by name; what is left out is the searcher's.

        Raises:
            ConfigurationError: the job has no place left or is Completed, its strategy has no use for given values, or
                these are not of its ranges.
        """
        with Store(self._store) as store:
            add_trial(store, self._name(), hyperparameters)

    def stop_training_job(self, name: str) -> None:
        """Asks for a trial of the job to be stopped, from any process, at its next report; what it found is kept.

        The job goes on without it: its rung is cut among the others, and nothing is suggested in its place.

        Args:
            name: the trial's.

        Raises:
            ConfigurationError: the job has no such trial, or it has ended.
        """
        with Store(self._store) as store:
            stop_trial(store, self._name(), name)

    def stop_tuning_job(self) -> None:
        """Asks the job to stop, from any process: its trials end at their next report, and what was found is kept."""
        with Store(self._store) as store:
            store.request_stop(self._name())

    def describe(self) -> dict[str, Any]:
        """The job in the form of SageMaker's Describe response, with its `Summary` beside.

        Times are datetimes in UTC, as SageMaker's client gives them: `json.dumps(described, default=str)`.
        """
        with Store(self._store) as store:
            name = self._name()
            return describe(store.job(name), store.trials(name), store.acts(name))

    def analytics(self) -> HyperparameterTuningJobAnalytics:
        """The job's trials as a DataFrame."""
        return HyperparameterTuningJobAnalytics(self._name(), store=self._store)

    def best_training_job(self) -> str:
        """Return the name of the best trial, or "untuned" if the job's un-tuned run is better than all trials.

        Raises:
            WarmbandError: none has reported a finite objective.
        """
        return best_of(self._store, self._name()).trial_id

    def overall_best_training_job(self) -> str:
        """Return the name of the best run of the job and of parents with the same data and trainer, where it has such.

        Raises:
            WarmbandError: none has reported a finite objective.
        """
        return overall_best_of(self._store, self._name()).trial_id

    def best_estimator(self, best_training_job: str | Mapping[str, Any] | None = None) -> Trainer:
        """Return a trainer with a trial's hyperparameters, whose `model()` is what the trial trained.

        Args:
            best_training_job: a trial's name, "untuned" for the un-tuned run, or a dict that has it as
                "TrainingJobName"; None for what `best_training_job` returns.

        Raises:
            ConfigurationError: the job has no such trial.
            WarmbandError: none has reported a finite objective.
        """
        trial = chosen_of(self._store, self._name(), best_training_job)
        estimator = self.settings.estimator
        trainer, own = estimator.chosen({**estimator.hyperparameters, **trial.hyperparameters})
        by_best = self.settings.options["objective_value"] == "best"
        units = (trial.best_resource or trial.resource) if by_best else trial.resource
        return trainer.as_trained(own, units).trained(trial.checkpoint, dropped(trial.trial_id), trial.manifest)

    def _model_of(self, training_job_name: str | None) -> tuple[str, str, Trainer]:
        trial = chosen_of(self._store, self._name(), training_job_name)
        return self._name(), trial.trial_id, self.best_estimator(trial.trial_id)

    def _name(self) -> str:
        if self.latest_tuning_job is None:
            raise ConfigurationError("No tuning job available: call fit() first, or attach() to a job by its name")
        return self.latest_tuning_job.name

    def _job(self) -> JobRow:
        with Store(self._store) as store:
            return store.job(self._name())


_NAMES = frozenset({*SETTINGS, *declared()})
"""The settings, each of which is an attribute."""
