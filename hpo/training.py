"""`TrainingJob`: a single training as a job of the record, with its curve, its bill and its logs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from rich.console import Console

from hpo import jobs
from hpo.cost import Prices
from hpo.estimators import as_trainer
from hpo.forecasts import Forecast
from hpo.notices import Email, Webhook
from hpo.observers import Callback, console_for, show_training
from hpo.record import TRAINING, JobRow, Store, TrialRow, is_training, status_and_reason
from hpo.sagemaker import HasModel, describe_any, register_where_asked, tuned_trials
from hpo.text import printer
from trainers.errors import ConfigurationError, WarmbandError
from trainers.gangs import Report
from trainers.result import TrainingResult
from trainers.trainer import Trainer

if TYPE_CHECKING:
    import pandas


OVER = ("Completed", "Failed", "Stopped")
_LOOK_SECONDS = 1.0


class TrainingJob(HasModel):
    """Trains one configuration once, like `Trainer.fit`, as a job that has a name.

    The record keeps the job as it keeps tuning jobs: every report, what it was billed, what its driver said, and where
    its model is. It goes on from its last checkpoint when its workers are lost, and by `resume` when its driver is.

    Args:
        estimator: the trainer, with all its hyperparameters; or a `ray.train.torch.TorchTrainer`, as it is.
        objective_metric_name: "channel:metric" whose value stands for the training; None for none.
        objective_type: "Maximize" or "Minimize".
        checkpoint_every: units (boosting rounds, epochs) between checkpoints; None is a tenth of the training, or the
            end alone where a program that writes no checkpoints would begin again at each.
        max_runtime_in_seconds: the job stops after this long; `resume` goes on.
        random_seed: of the training's random numbers; None draws one, and records it.
        tags: kept in the record: texts by name, or SageMaker's list of such as {"Key": "team", "Value": "churn"}.
        base_job_name: what the job's name begins with.
        prices: what workers cost, so that the bill is in money too.
        max_cost: the job stops once it was billed so much at these prices.
        notices: who is told of the job's end and of its budget: a `Webhook` or an `Email` by a name of your own.
        store: database URL of the record; None is `WARMBAND_STORE`, or a SQLite file in `WARMBAND_HOME`.
        callbacks: your own code, called while the job runs.
        console: where progress and summary are printed; None is standard output, and False prints nothing.
        verbose: also show Ray's own logs and what workers print.
        **options: `objective_value`, `priority`, `max_wait`, `max_silence` and `storage_path` of `hpo.jobs.Options`.

    Raises:
        ConfigurationError: a value is wrong, or hyperparameters do not say how long to train.
    """

    def __init__(
        self,
        estimator: Trainer,
        objective_metric_name: str | None = None,
        objective_type: str = "Maximize",
        *,
        checkpoint_every: int | None = None,
        max_runtime_in_seconds: int | None = None,
        random_seed: int | None = None,
        tags: list[dict[str, str]] | Mapping[str, str] | None = None,
        base_job_name: str | None = None,
        prices: Prices | None = None,
        max_cost: float | None = None,
        notices: Mapping[str, Webhook | Email] | None = None,
        store: str | None = None,
        callbacks: Sequence[Callback] = (),
        console: Console | Literal[False] | None = None,
        verbose: bool = False,
        **options: Unpack[jobs.Options],
    ) -> None:
        known = [name for name in jobs.declared() if name not in jobs.OF_SEVERAL]
        unknown = [name for name in options if name not in known]
        jobs.check_no_others(unknown, [*inspect.signature(type(self)).parameters, *known], of="TrainingJob")
        jobs.check_own_arguments(None, store)
        settings = jobs.JobSettings.for_training(
            as_trainer(estimator),
            objective_metric_name=objective_metric_name,
            objective_type=objective_type,
            checkpoint_every=checkpoint_every,
            max_runtime_in_seconds=max_runtime_in_seconds,
            random_seed=random_seed,
            tags=tags,
            base_tuning_job_name=base_job_name,
            prices=prices,
            max_cost=max_cost,
            notices=notices,
            options=options,
        )
        self._begin(settings, store, console_for(console), callbacks, verbose=verbose)

    def _begin(
        self,
        settings: jobs.JobSettings,
        store: str | None,
        console: Console,
        callbacks: Sequence[Callback],
        *,
        verbose: bool,
    ) -> None:
        self.settings = settings
        self.name: str | None = None
        """The job's; None before `fit`."""
        self.callbacks = tuple(callbacks)
        self._verbose = verbose
        self._store = store
        self._console, self._say = console, printer(console)
        self._allowed = frozenset(settings.code().values())

    @classmethod
    def of(
        cls,
        settings: jobs.JobSettings,
        store: str | None = None,
        *,
        callbacks: Sequence[Callback] = (),
        console: Console | Literal[False] | None = None,
        verbose: bool = False,
    ) -> Self:
        """A job of settings that `JobSettings.for_training` made.

        Args:
            settings: its.
            store: as the class takes it.
            callbacks: likewise.
            console: likewise.
            verbose: likewise.
        """
        job = cls.__new__(cls)
        job._begin(settings, store, console_for(console), callbacks, verbose=verbose)
        return job

    @classmethod
    def attach(
        cls,
        training_job_name: str,
        *,
        store: str | None = None,
        allow_code: bool = False,
        console: Console | Literal[False] | None = None,
    ) -> Self:
        """A training of the record, in this process or another, while it runs or after.

        Args:
            training_job_name: the job.
            store: database URL of the record; None is the default one.
            allow_code: import the Python code that the record names, which `resume` needs; a trainer of your own is
                needed to look at the job, too.
            console: where its end is printed.

        Raises:
            ConfigurationError: the record has no such job, it is a tuning job, or its trainer is a class of a user's
                own, and that is not allowed.
        """
        with Store(store) as opened:
            row = opened.job(training_job_name)
        if not is_training(row):
            raise ConfigurationError(
                f"job {training_job_name!r} is a tuning job; attach to it with hpo.HyperparameterTuner"
            )
        allowed = jobs.attached_code(row.spec, training_job_name, allow_code=allow_code)
        job = cls.of(jobs.JobSettings.of(row, allow_code=allow_code), store, console=console)
        job._allowed = job._allowed | allowed if allow_code else allowed
        job.name = training_job_name
        return job

    # ---- running

    def fit(self, inputs: Mapping[str, Any] | None = None, job_name: str | None = None, wait: bool = True) -> None:
        """Trains.

        Args:
            inputs: channels by name, as `trainers.Channel.of` takes them; none for a Ray trainer.
            job_name: unique, at most 32 letters, digits and hyphens; None makes one.
            wait: False returns once the job runs in a process apart, as `HyperparameterTuner.fit` has it.

        Raises:
            ConfigurationError, DataError: before anything starts.
            ResourcesError, GangError: the cluster cannot hold a gang, or gangs do not start.
            WarmbandError: training failed, or diverged.
            KeyboardInterrupt: after Ctrl-C, when the job is closed and recorded as Stopped.
            SystemExit: likewise after SIGTERM.
        """
        self._say(jobs.FIRST_LINE)
        settings = self.settings.changed()
        server = None if wait else jobs.apart(self.settings, self.callbacks)
        settings = jobs.sized(settings, inputs, self._say)
        job = jobs.NewJob.of(settings, inputs, job_name, self._store, apart=not wait)
        self.settings = settings
        self._allowed |= {*jobs.inputs_code(job.row.spec["inputs"]).values()}
        with jobs.Interrupts(self._say, job.resume) if wait else nullcontext() as interrupts:
            record = job.write()
            self.name = job.row.name
            job.announce(record, self._console)
            if interrupts is None:
                jobs.launch.start_apart(job.row.name, self._store, server, self._say, allowed=self._allowed)
            else:
                job.run(interrupts, self.callbacks, self._console, verbose=self._verbose).check(job.row.name, TRAINING)
        if wait:
            register_where_asked(self.callbacks, self.register, self._say)

    def resume(self, wait: bool = True, inputs: Mapping[str, Any] | None = None, **limits: float) -> None:
        """Goes on from the last checkpoint where the job was stopped, or its driver died.

        Args:
            wait: as `fit` takes it.
            inputs: the job's channels, where the record cannot open them: the rows have to be the same.
            **limits: larger `max_runtime_in_seconds`, `max_wait` or `max_cost` to go on under, for good.

        Raises:
            ConfigurationError, LeaseError, DataError: as `HyperparameterTuner.resume` does.
            WarmbandError, KeyboardInterrupt: as `fit` does.
        """
        name = self._named()
        jobs.check_record(self._row().spec, self._allowed, name, "attach() allow_code=True")
        if not wait:
            jobs.resume_apart(
                self._store,
                name,
                self.settings,
                self._say,
                inputs=inputs,
                callbacks=self.callbacks,
                allowed=self._allowed,
                limits=limits,
            )
            return
        jobs.drive(
            self._store,
            name,
            console=self._console,
            verbose=self._verbose,
            resume=True,
            inputs=inputs,
            callbacks=self.callbacks,
            allowed=self._allowed,
            limits=limits,
        ).check(name, TRAINING)
        register_where_asked(self.callbacks, self.register, self._say)

    def check(self, inputs: Mapping[str, Any] | None = None, job_name: str | None = None, wait: bool = True) -> None:
        """Check the job and its data as `fit` does, and print the plan. Record and start nothing.

        Args:
            inputs: as `fit` takes them.
            job_name: as `fit` takes it.
            wait: as `fit` takes it.

        Raises:
            ConfigurationError, DataError: the job or its data are wrong.
        """
        settings = self.settings.changed()
        jobs.check_job(settings, inputs, job_name, self._store, self.callbacks, self._console, wait=wait)

    def forecast(self, inputs: Mapping[str, Any] | None = None) -> Forecast:
        """The seconds and the cost of the training, without running it; as `HyperparameterTuner.forecast`."""
        return jobs.forecast_of(self.settings, inputs, self._store, self._console, verbose=self._verbose)

    def wait(self) -> None:
        """Waits until the job has ended, in whatever process, and prints what it came to.

        Raises:
            WarmbandError: it ended as Failed.
        """
        while (ended := status_and_reason(row := self._row()))[0] not in OVER:
            time.sleep(_LOOK_SECONDS)
        status, reason = ended
        if row.summary.get("wall_seconds") is not None:
            stopped = status == "Stopped"
            resume = (
                jobs.how_to_resume(row.name, row.spec, self._store, training=True, reason=reason) if stopped else ""
            )
            self._console.print(show_training(row.name, status, {**row.summary, "reason": reason}, resume=resume))
        if status == "Failed":
            raise WarmbandError(f"training job {row.name} failed: {reason}")

    def stop(self) -> None:
        """Asks the job to stop, from any process: it ends at its next report, with a checkpoint."""
        with Store(self._store) as store:
            store.request_stop(self._named())

    # ---- what it came to

    def describe(self) -> dict[str, Any]:
        """The job in the form of SageMaker's DescribeTrainingJob response, with its `Summary` beside.

        Times are datetimes in UTC, as SageMaker's client gives them: `json.dumps(described, default=str)`.
        """
        with Store(self._store) as store:
            return describe_any(store, self._named())

    def curve(self) -> pandas.DataFrame:
        """A row a unit, indexed by `step`; a column a metric."""
        return self.result().curve

    def model(self) -> Any:
        """The trained model, in its library's own form; of a job that was stopped, what it had trained.

        Raises:
            WarmbandError: it has trained nothing yet.
        """
        return self.result().model()

    def result(self) -> TrainingResult[Trainer]:
        """The result as `Trainer.fit` gives it, of what the record has by now.

        Raises:
            WarmbandError: nothing has been reported yet.
        """
        name = self._named()
        with Store(self._store) as store:
            trial, reports = self._trial(store), store.reports(name)
            ledger = store.ledger(name)
            status = status_and_reason(store.job(name))[0]
        if trial is None or not reports:
            raise WarmbandError(f"training job {name} has reported nothing yet: it is {status}")
        shown = tuple(Report(step=each.step, metrics=each.metrics) for each in reports)
        training = sum(row.worker_seconds / (row.workers or 1) for row in ledger if row.kind == "training")
        missing = "" if trial.checkpoint else f"training job {name} has no checkpoint yet: it is {status}"
        return TrainingResult(
            metrics=dict(shown[-1].metrics),
            reports=shown,
            checkpoint=trial.checkpoint,
            worker_seconds=sum(row.worker_seconds for row in ledger),
            training_seconds=training,
            trainer=self.settings.estimator.trained(trial.checkpoint, missing, trial.manifest),
            details=trial.details,
        )

    def _model_of(self, training_job_name: str | None) -> tuple[str, str, Trainer]:
        name = self._named()
        if training_job_name not in (None, name):
            raise ConfigurationError(f"training_job_name is {training_job_name!r}, and this is {name!r}; leave it out")
        with Store(self._store) as store:
            trial = self._trial(store)
        if trial is None or not trial.checkpoint:
            raise WarmbandError(f"training job {name} has no model yet")
        return name, trial.trial_id, self.result().trainer

    def _trial(self, store: Store) -> TrialRow | None:
        return next(iter(tuned_trials(store, self._named())), None)

    def _named(self) -> str:
        if self.name is None:
            raise ConfigurationError("there is no training job yet: call fit() first, or attach() to a job by its name")
        return self.name

    def _row(self) -> JobRow:
        with Store(self._store) as store:
            return store.job(self._named())


def train(
    estimator: Trainer,
    inputs: Mapping[str, Any] | None = None,
    name: str | None = None,
    *,
    wait: bool = True,
    **arguments: Any,
) -> TrainingJob:
    """Trains once, as a job of the record: `Trainer.fit` with a name.

    Args:
        estimator: the trainer, with all its hyperparameters.
        inputs: channels by name, as `Trainer.fit` takes them.
        name: the job's; None makes one.
        wait: False returns once the job runs in a process apart, which outlives this one.
        **arguments: the others of `TrainingJob`.

    Returns:
        The job: `result()` is what `Trainer.fit` returns, and `model()` the model.

    Raises:
        ConfigurationError, DataError: before anything starts.
        WarmbandError, KeyboardInterrupt, SystemExit: as `TrainingJob.fit` does.
    """
    job = TrainingJob(estimator, **arguments)
    job.fit(inputs, name, wait)
    return job
