"""`HyperparameterTuner`: a tuning job from Python, under the names that users of SageMaker know."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Literal, Self, Unpack

from rich.console import Console

from hpo import jobs
from hpo.autotune import Autotuned
from hpo.cost import Prices
from hpo.estimators import as_trainer, inputs_of, kept_static, put_together, with_definitions
from hpo.forecasts import Forecast
from hpo.notices import Email, Webhook
from hpo.observers import Callback, console_for
from hpo.ranges import ParameterRange
from hpo.record import Store, is_training
from hpo.sagemaker import HasModel, TunedJob, register_where_asked
from hpo.strategies import (
    Plan,
    Strategy,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
    WarmStartConfig,
    WarmStartTypes,
    in_place_of,
)
from hpo.training import TrainingJob
from trainers.trainer import Trainer


class HyperparameterTuner(TunedJob):
    """Searches the hyperparameters of a distributed training.

    Parameters have the names, order and defaults of SageMaker's class of this name; those after
    `hyperparameters_to_keep_static` are Warmband's own.

    Args:
        estimator: the trainer: workers and static hyperparameters; or a `ray.train.torch.TorchTrainer`, as it is.
        objective_metric_name: "channel:metric", such as "validation:auc"; of a Ray trainer, whatever it reports.
        hyperparameter_ranges: a range a tuned hyperparameter; its values override static ones. None with `autotune`.
        metric_definitions: of a `ScriptTrainer`, regular expressions over what its program prints, in place of the
            trainer's own; other trainers report their metrics, and take none.
        strategy: "Bayesian", "Hyperband", "ASHA", "Random" or "Grid", or a `hpo.strategies.Strategy` of your own.
        objective_type: "Maximize" or "Minimize".
        max_jobs: trials in all; None is 1, and with Grid every combination.
        max_parallel_jobs: trials at once; each holds a gang of workers.
        max_runtime_in_seconds: the job stops after this long, with what it has found.
        tags: kept in the record: texts by name, or SageMaker's list of such as {"Key": "team", "Value": "churn"}.
        base_tuning_job_name: what the job's name begins with.
        warm_start_config: earlier jobs whose results a strategy with a model learns from.
        strategy_config: Hyperband's own configuration.
        completion_criteria_config: what ends the job before all its trials have run.
        early_stopping_type: "Auto" stops trials that are behind the median of those before them; not with Hyperband.
        estimator_name: kept in the record.
        random_seed: everything random derives from it; None draws one, and records it.
        autotune: True chooses ranges, length, strategy and budget that are not given, and says so; see `Autotuned`.
        hyperparameters_to_keep_static: names of the trainer's hyperparameters that `autotune` leaves as they are.
        store: database URL of the record; None is `WARMBAND_STORE`, or a SQLite file in `WARMBAND_HOME`.
        callbacks: your own code, called while the job runs.
        console: where plan, progress and summary are printed; None is standard output, and False prints nothing.
        verbose: also show Ray's own logs and what workers print.
        prices: what workers cost, so that reports say it in money too.
        max_cost: the job stops once it was billed so much at these prices, with what it has found.
        points_to_evaluate: values for the first trials, such as [{"eta": 0.3}]; what a point leaves out is the
            searcher's. Not with Grid.
        takes_effect: units from which hyperparameters take effect, such as {"eta_after": "decay_at"} or {"noise": 5};
            what trials have in common until then is trained once. The others take effect from the beginning.
        searcher: in the place of a strategy, what suggests: any searcher of Ray Tune's or sampler of Optuna's, as a
            class or its import path, with a dict of arguments where it takes some, or as an object.
        scheduler: likewise what stops trials: any scheduler of Ray Tune's.
        notices: who is told of the job's end and of its budget: a `Webhook` or an `Email` by a name of your own.
        **options: those of `hpo.jobs.Options`: `objective_value`, `priority`, `max_wait`, `storage_path` and others.

    Raises:
        ConfigurationError: a value is wrong, or asks for what is not there yet.
    """

    TUNING_JOB_NAME_MAX_LENGTH: ClassVar[int] = jobs.NAME_LENGTH

    @jobs.with_options
    def __init__(
        self,
        estimator: Trainer,
        objective_metric_name: str,
        hyperparameter_ranges: Mapping[str, ParameterRange] | None,
        metric_definitions: list[dict[str, str]] | None = None,
        strategy: str | Strategy = "Bayesian",
        objective_type: str = "Maximize",
        max_jobs: int | None = None,
        max_parallel_jobs: int = 1,
        max_runtime_in_seconds: int | None = None,
        tags: list[dict[str, str]] | Mapping[str, str] | None = None,
        base_tuning_job_name: str | None = None,
        warm_start_config: WarmStartConfig | None = None,
        strategy_config: StrategyConfig | None = None,
        completion_criteria_config: TuningJobCompletionCriteriaConfig | None = None,
        early_stopping_type: str = "Off",
        estimator_name: str | None = None,
        random_seed: int | None = None,
        autotune: bool | Autotuned = False,
        hyperparameters_to_keep_static: Sequence[str] | None = None,
        *,
        store: str | None = None,
        callbacks: Sequence[Callback] = (),
        console: Console | Literal[False] | None = None,
        verbose: bool = False,
        prices: Prices | None = None,
        max_cost: float | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        takes_effect: Mapping[str, int | str] | None = None,
        searcher: Any = None,
        scheduler: Any = None,
        notices: Mapping[str, Webhook | Email] | None = None,
        **options: Unpack[jobs.Options],
    ) -> None:
        unknown = [name for name in options if name not in jobs.declared()]
        jobs.check_no_others(unknown, inspect.signature(type(self)).parameters)
        jobs.check_own_arguments(metric_definitions, store)
        settings = jobs.JobSettings(
            estimator=with_definitions(as_trainer(estimator), metric_definitions),
            objective_metric_name=objective_metric_name,
            ranges={} if autotune and hyperparameter_ranges is None else hyperparameter_ranges,  # type: ignore[arg-type]
            strategy=in_place_of(strategy, searcher=searcher, scheduler=scheduler),
            objective_type=objective_type,
            max_jobs=max_jobs,
            max_parallel_jobs=max_parallel_jobs,
            max_runtime_in_seconds=max_runtime_in_seconds,
            tags=tags,
            base_tuning_job_name=base_tuning_job_name,
            strategy_config=strategy_config,
            completion_criteria_config=completion_criteria_config,
            warm_start_config=warm_start_config,
            early_stopping_type=early_stopping_type,
            estimator_name=estimator_name,
            random_seed=random_seed,
            prices=prices,
            max_cost=max_cost,
            points_to_evaluate=points_to_evaluate,
            takes_effect=takes_effect,
            autotune=autotune,
            hyperparameters_to_keep_static=hyperparameters_to_keep_static,
            notices=notices,
            options=options,
            planned=self._planned,
        )
        super().__init__(settings, store, console_for(console))
        self.callbacks = tuple(callbacks)
        self._verbose = verbose

    @classmethod
    def create(
        cls,
        estimator_dict: Mapping[str, Trainer],
        objective_metric_name_dict: Mapping[str, str],
        hyperparameter_ranges_dict: Mapping[str, Mapping[str, ParameterRange]],
        hyperparameters_to_keep_static_dict: Mapping[str, Sequence[str]] | None = None,
        **arguments: Any,
    ) -> Self:
        """A tuner of several estimators at once: the trials of all share one budget, and one of them is the best.

        Args:
            estimator_dict: trainers by name, two or more; they read the same channels, on workers of the same kind.
            objective_metric_name_dict: what each calls the objective; values are compared with one another.
            hyperparameter_ranges_dict: of each one's hyperparameters, under its own names for them.
            hyperparameters_to_keep_static_dict: those of each that `autotune` leaves as they are.
            **arguments: the others of the class.

        Raises:
            ConfigurationError: a value is wrong, or the estimators do not go together.
        """
        estimator, objective, ranges = put_together(
            estimator_dict, objective_metric_name_dict, hyperparameter_ranges_dict
        )
        if hyperparameters_to_keep_static_dict is not None:
            arguments["hyperparameters_to_keep_static"] = kept_static(estimator, hyperparameters_to_keep_static_dict)
        return cls(estimator, objective, ranges, **arguments)

    # ---- running

    def fit(
        self,
        inputs: Mapping[str, Any] | None = None,
        job_name: str | None = None,
        include_cls_metadata: bool = False,
        estimator_kwargs: None = None,
        wait: bool = True,
    ) -> None:
        """Runs the job.

        Args:
            inputs: channels by name, "train" among them, as `trainers.Channel.of` takes them; none for a Ray trainer.
            job_name: unique, at most 32 letters, digits and hyphens; None makes one.
            include_cls_metadata: must stay False; SageMaker's own containers know what it means.
            estimator_kwargs: must stay None, as well.
            wait: False returns once the job runs in a process apart, which outlives this one: on the Ray cluster that
                is open here or that `RAY_ADDRESS` names, through Ray's Jobs API, else in the background of this
                machine, where it is started again if it dies. Callbacks and functions of a script cannot follow it.

        Raises:
            ConfigurationError, DataError: before anything starts.
            ResourcesError, GangError: the cluster cannot hold a gang, or gangs do not start.
            KeyboardInterrupt: after Ctrl-C, when the job is closed and recorded as Stopped.
            SystemExit: likewise after SIGTERM.
        """
        jobs.check_not_there_yet(include_cls_metadata=include_cls_metadata or None, estimator_kwargs=estimator_kwargs)
        self._say(jobs.FIRST_LINE)
        # A new job's brackets follow from the settings as they are now.
        settings = self.settings.changed()
        server = None if wait else jobs.apart(self.settings, self.callbacks)
        channels = inputs_of(settings.estimator, inputs)
        settings = jobs.sized(settings, channels, self._say)
        job = jobs.NewJob.of(settings, channels, job_name, self._store, self.TUNING_JOB_NAME_MAX_LENGTH, apart=not wait)
        self.settings = settings
        self._allowed |= {*jobs.inputs_code(job.row.spec["inputs"]).values()}
        with jobs.Interrupts(self._say, job.resume) if wait else nullcontext() as interrupts:
            record = job.write()
            self.latest_tuning_job = jobs.TuningJob(name=job.row.name)
            job.announce(record, self._console)
            if interrupts is None:
                jobs.launch.start_apart(job.row.name, self._store, server, self._say, allowed=self._allowed)
            else:
                job.run(interrupts, self.callbacks, self._console, verbose=self._verbose).check(job.row.name)
        if wait:
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
        settings, longest = self.settings.changed(), self.TUNING_JOB_NAME_MAX_LENGTH
        channels = inputs_of(settings.estimator, inputs)
        jobs.check_job(settings, channels, job_name, self._store, self.callbacks, self._console, longest, wait=wait)

    def resume(self, wait: bool = True, inputs: Mapping[str, Any] | None = None, **limits: float) -> None:
        """Goes on with the job where its driver died or it was stopped; trials that have ended are not run again.

        Everything that the tuner was made with comes out of the record, and so do the inputs where they can be opened
        again. Callbacks do not: those of this tuner are called.

        Args:
            wait: as `fit` takes it.
            inputs: the job's channels, where the record cannot open them: the rows have to be the same.
            **limits: larger `max_jobs`, `max_runtime_in_seconds`, `max_wait` or `max_cost` to go on under, for good.

        Raises:
            ConfigurationError: another process drives the job, its record names code that this tuner was not made
                with, which `attach(..., allow_code=True)` allows, or its limits cannot be raised to these.
            DataError: the inputs are not to be opened from here, or have changed.
            ResourcesError, GangError, KeyboardInterrupt: as `fit` does.
        """
        name = self._name()
        jobs.check_record(self._job().spec, self._allowed, name, "attach() allow_code=True")
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
        ended = jobs.drive(
            self._store,
            name,
            console=self._console,
            verbose=self._verbose,
            resume=True,
            inputs=inputs,
            callbacks=self.callbacks,
            allowed=self._allowed,
            limits=limits,
        )
        ended.check(name)
        register_where_asked(self.callbacks, self.register, self._say)

    def forecast(self, inputs: Mapping[str, Any]) -> Forecast:
        """The job's forecast, without running it.

        It comes from the most alike of the record's earlier jobs on the same data; where there is none, from a probe
        of a few units, on a gang that is started for it. Nothing is recorded.

        Args:
            inputs: as `fit` takes them.

        Raises:
            ConfigurationError, DataError, ResourcesError, GangError: as `fit` does.
            TrialError: the static hyperparameters cannot be trained, so that nothing could be measured.
        """
        self.settings = self.settings.changed()  # As for `fit`.
        channels = inputs_of(self.settings.estimator, inputs)
        return jobs.forecast_of(self.settings, channels, self._store, self._console, verbose=self._verbose)

    def identical_dataset_and_algorithm_tuner(self, additional_parents: Iterable[str] | None = None) -> Self:
        """A tuner like this one, whose jobs begin with the results of this one's last job as if they were their own.

        Args:
            additional_parents: the names of other jobs with the same data and trainer.
        """
        return self._warm(WarmStartTypes.IDENTICAL_DATA_AND_ALGORITHM, additional_parents, self.settings.estimator)

    def transfer_learning_tuner(
        self, additional_parents: Iterable[str] | None = None, estimator: Trainer | None = None
    ) -> Self:
        """A tuner like this one, whose jobs begin with what of this one's last job says which values are better.

        Args:
            additional_parents: the names of other jobs with the same hyperparameters.
            estimator: another trainer; None is this one's.
        """
        return self._warm(WarmStartTypes.TRANSFER_LEARNING, additional_parents, estimator or self.settings.estimator)

    def _warm(self, kind: WarmStartTypes, others: Iterable[str] | None, estimator: Trainer) -> Self:
        config = WarmStartConfig(kind, {self._name(), *(others or ())})
        arguments = {**self.settings.arguments(), "estimator": estimator, "warm_start_config": config}
        return type(self)(
            **arguments,
            store=self._store,
            callbacks=self.callbacks,
            verbose=self._verbose,
            console=self._console,
        )

    def hyperparameter_ranges(self) -> dict[str, list[dict[str, Any]]]:
        """The ranges by kind, in the API's form."""
        return jobs.by_kind(self.settings.ranges)

    def plan(self) -> Plan:
        """The brackets of the job, before it starts."""
        return self.settings.plan()

    def _repr_html_(self) -> str:
        """For notebooks: the job, or before `fit` the plan."""
        from hpo.report import job_html, plan_html

        if self.latest_tuning_job is not None:
            return job_html(self._name(), self._store)
        aim = f"{self.objective_type} the {self.objective_value} value of {self.objective_metric_name}."
        title = f"{self.settings.strategy_name}, {self.max_jobs} trials, {self.max_parallel_jobs} at once"
        return plan_html(title, aim, self.plan(), {name: bounds.to_json() for name, bounds in self.ranges.items()})


def attached(name: str, store: str | None = None, *, allow_code: bool = False) -> HasModel:
    """A job of the record, of tuning or of a single training.

    Args:
        name: the job's.
        store: database URL of the record; None is the default one.
        allow_code: import the Python code that the record names.

    Raises:
        ConfigurationError: there is no such job, or it needs code that is not allowed.
    """
    with Store(store) as opened:
        training = is_training(opened.job(name))
    if training:
        return TrainingJob.attach(name, store=store, allow_code=allow_code)
    return HyperparameterTuner.attach(name, store=store, allow_code=allow_code)
