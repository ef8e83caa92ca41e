"""`HyperparameterTuner`: a tuning job from Python, under the names that users of SageMaker know."""

from __future__ import annotations

import difflib
import inspect
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Literal, Never, Self

from rich.console import Console

from hpo.cost import Prices
from hpo.forecasts import LOOK_SECONDS, PROBE, Forecast, Look, forecast_from, joins, rehearse, threads_for
from hpo.jobs import (
    EXIT_CODES,
    INTERRUPTED,
    NUM_TO_KEEP,
    TERMINATED,
    Ended,
    Interrupts,
    JobsServer,
    TuningJob,
    background,
    check_allowed,
    check_arguments,
    check_cost,
    check_job_name,
    check_name_free,
    check_no_others,
    check_not_there_yet,
    check_num_to_keep,
    check_record,
    copy_inputs,
    driver,
    dropped,
    folder as job_folder,
    in_record,
    new_name,
    opened,
    outlook_for,
    plan_of,
    record_inputs,
    search_for,
    settings as made_with,
    trial_name,
    warnings,
    whereabouts,
)
from hpo.observers import Callback, console_for, show_plan, show_summary
from hpo.ranges import ParameterRange
from hpo.record import JobRow, Store, TrialRow, tags_from
from hpo.sagemaker import HyperparameterTuningJobAnalytics, best_trial, describe, status_and_reason, tuned_trials
from hpo.strategies import Plan, StrategyConfig, TuningJobCompletionCriteriaConfig
from trainers import storage
from trainers.errors import ConfigurationError, WarmbandError
from trainers.home import home
from trainers.trainer import OWN_CLASS, Trainer


class HyperparameterTuner:
    """Searches the hyperparameters of a distributed training.

    Parameters have the names, order and defaults of SageMaker's class of this name; those after
    `hyperparameters_to_keep_static` are Warmband's own.

    Args:
        estimator: the trainer: workers and static hyperparameters.
        objective_metric_name: "channel:metric", such as "validation:auc".
        hyperparameter_ranges: a range a tuned hyperparameter; its values override static ones.
        metric_definitions: not used: trainers report their metrics, and nothing is read from logs.
        strategy: "Hyperband" or "Random".
        objective_type: "Maximize" or "Minimize".
        max_jobs: trials in all.
        max_parallel_jobs: trials at once; each holds a gang of workers.
        max_runtime_in_seconds: the job stops after this long, with what it has found.
        tags: kept in the record: texts by name, or SageMaker's list of such as {"Key": "team", "Value": "churn"}.
        base_tuning_job_name: what the job's name begins with.
        warm_start_config: not there yet.
        strategy_config: Hyperband's own configuration.
        completion_criteria_config: what ends the job before all its trials have run.
        early_stopping_type: "Off".
        estimator_name: kept in the record.
        random_seed: everything random derives from it; None draws one, and records it.
        autotune: not there yet.
        hyperparameters_to_keep_static: not there yet.
        objective_value: compare trials by their "last" value, as SageMaker does, or by their "best" so far.
        storage_path: folder or URI for checkpoints; None is `WARMBAND_HOME/jobs`.
        store: database URL of the record; None is `WARMBAND_STORE`, or a SQLite file in `WARMBAND_HOME`.
        num_to_keep: trials whose checkpoints stay, the best ones; None keeps every one's.
        callbacks: your own code, called while the job runs.
        console: where plan, progress and summary are printed; None is standard output, and False prints nothing.
        verbose: also show Ray's own logs and what workers print.
        prices: what workers cost, so that reports say it in money too.
        max_cost: the job stops once it was billed so much at these prices, with what it has found.
        max_wait: the job stops after so many seconds of waiting for machines and running together, with what it has
            found; `max_runtime_in_seconds`, which may not be more, then counts running alone. Without, it gives up
            after 120 s without room for a gang.
        priority: the job's weight where several share a cluster: with 2 it may hold twice what one with 1 may.
        **others: nothing; any other argument is refused by name.

    Raises:
        ConfigurationError: a value is wrong, or asks for what is not there yet.
    """

    TUNING_JOB_NAME_MAX_LENGTH: ClassVar[int] = 32

    def __init__(
        self,
        estimator: Trainer,
        objective_metric_name: str,
        hyperparameter_ranges: Mapping[str, ParameterRange],
        metric_definitions: list[dict[str, str]] | None = None,
        strategy: str = "Bayesian",
        objective_type: str = "Maximize",
        max_jobs: int | None = None,
        max_parallel_jobs: int = 1,
        max_runtime_in_seconds: int | None = None,
        tags: list[dict[str, str]] | Mapping[str, str] | None = None,
        base_tuning_job_name: str | None = None,
        warm_start_config: None = None,
        strategy_config: StrategyConfig | None = None,
        completion_criteria_config: TuningJobCompletionCriteriaConfig | None = None,
        early_stopping_type: str = "Off",
        estimator_name: str | None = None,
        random_seed: int | None = None,
        autotune: bool = False,
        hyperparameters_to_keep_static: None = None,
        *,
        objective_value: str = "last",
        storage_path: str | None = None,
        store: str | None = None,
        num_to_keep: int | None = NUM_TO_KEEP,
        callbacks: Sequence[Callback] = (),
        console: Console | Literal[False] | None = None,
        verbose: bool = False,
        prices: Prices | None = None,
        max_cost: float | None = None,
        max_wait: int | None = None,
        priority: int = 1,
        **others: Never,
    ) -> None:
        check_no_others(others, inspect.signature(type(self)).parameters)
        check_arguments(
            estimator,
            objective_metric_name,
            hyperparameter_ranges,
            metric_definitions=metric_definitions,
            strategy=strategy,
            objective_type=objective_type,
            objective_value=objective_value,
            early_stopping_type=early_stopping_type,
            max_jobs=max_jobs,
            max_parallel_jobs=max_parallel_jobs,
            base_tuning_job_name=base_tuning_job_name,
            strategy_config=strategy_config,
            estimator_name=estimator_name,
            storage_path=storage_path,
            store=store,
            max_runtime_in_seconds=max_runtime_in_seconds,
            max_wait=max_wait,
            random_seed=random_seed,
            warm_start_config=warm_start_config,
            autotune=autotune,
            hyperparameters_to_keep_static=hyperparameters_to_keep_static,
            priority=priority,
        )
        self.estimator = estimator
        self.objective_metric_name = objective_metric_name
        self.ranges = dict(hyperparameter_ranges)
        self.strategy = strategy
        self.strategy_config = strategy_config
        self.completion_criteria_config = completion_criteria_config
        check_num_to_keep(num_to_keep)
        self.num_to_keep = num_to_keep
        self.prices = prices
        self.max_cost = max_cost
        self.tariff = check_cost(estimator, prices, max_cost)
        """What a worker costs; None without prices."""
        self.callbacks = tuple(callbacks)
        self.objective_type = objective_type
        self.max_jobs = max_jobs or 1
        self.max_parallel_jobs = max_parallel_jobs
        self.max_runtime_in_seconds = max_runtime_in_seconds
        self.max_wait = max_wait
        self.tags = tags_from(tags)
        self.base_tuning_job_name = base_tuning_job_name
        self.early_stopping_type = early_stopping_type
        self.estimator_name = estimator_name
        self.random_seed = random_seed
        self.objective_value = objective_value
        self.storage_path = storage_path
        self.priority = priority
        self.latest_tuning_job: TuningJob | None = None
        self.planned: Plan | None = None
        """The brackets that the record has, of a tuner that was made again out of it and began no other job."""
        self._allowed = frozenset(estimator.code().values())
        """The code that the job's record may name where this tuner goes on with it."""
        self._store = store
        self._console = console_for(console)
        self._verbose = verbose
        self.plan()

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
            inputs: channels by name, "train" among them, as `trainers.Channel.of` takes them.
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
        check_not_there_yet(include_cls_metadata=include_cls_metadata or None, estimator_kwargs=estimator_kwargs)
        name = new_name(self) if job_name is None else job_name
        check_job_name(name, self.TUNING_JOB_NAME_MAX_LENGTH)
        with Store(self._store) as store:
            check_name_free(name, (job.name for job in store.jobs()), store.url)
        channels = opened(self, inputs)
        seed = secrets.randbelow(2**31) if self.random_seed is None else self.random_seed
        self.planned = None  # A new job's brackets follow from the settings as they are now.
        search, plan = search_for(self, name, seed), self.plan()
        server = None if wait else self._apart()
        storage.check_writable(search.storage_path)
        job_folder.check_free(search.storage_path, name)
        now = time.time()
        with Store(self._store) as store:
            most = {} if wait else {"most_bytes": math.inf}
            spec = self._spec(record_inputs(channels, search.storage_path, **most), seed)
            forecast = forecast_from(store, spec, outlook_for(self, search))
            # Another process, which resumes the job, may have another home.
            spec["storage_path"] = storage.absolute(self.storage_path or f"{home()}/jobs")
            spec[job_folder.FOLDER_ID] = secrets.token_hex(16)
            if not wait:
                copy_inputs(spec["inputs"], channels)
            job = JobRow(name=name, created_at=now, spec=spec, plan=plan.to_json(), owner=whereabouts.owner())
            record = store.url
        with Interrupts(self._say) if wait else nullcontext() as interrupts:
            with Store(self._store) as store:
                store.create_job(job)
            self.latest_tuning_job = TuningJob(name=name)
            self._announce(name, plan, forecast, record)
            if interrupts is None:
                self._started(server)
                return
            self._ended(
                driver.run(
                    self,
                    job,
                    channels,
                    forecast,
                    interrupts,
                    store=self._store,
                    console=self._console,
                    verbose=self._verbose,
                    copied=False,
                )
            )

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
        check_record(self._job().spec, self._allowed, name, "attach() allow_code=True")
        if not wait:
            if inputs is not None:
                raise ConfigurationError(
                    "inputs cannot follow a job to another process, which resume(wait=False) needs; call "
                    "resume(inputs=..., wait=True)"
                )
            server = self._apart()
            driver.check_resumable(self._store, name, limits)
            self._started(server, resume=True, limits=limits)
            return
        self._ended(
            driver.drive(
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
        )

    def forecast(self, inputs: Mapping[str, Any]) -> Forecast:
        """What the job would take, without running it.

        It comes from the most alike of the record's earlier jobs on the same data; where there is none, from a probe
        of a few units, on a gang that is started for it. Nothing is recorded.

        Args:
            inputs: as `fit` takes them.

        Raises:
            ConfigurationError, DataError, ResourcesError, GangError: as `fit` does.
            TrialError: the static hyperparameters cannot be trained, so that nothing could be measured.
        """
        look = Look(joined=not self.estimator.in_hand and joins())
        channels = opened(self, inputs)
        self.planned = None  # As for `fit`.
        search = search_for(self, f"forecast-{secrets.token_hex(4)}", self.random_seed or 0)
        with Store(self._store) as store:
            spec = self._spec(record_inputs(channels, search.storage_path), search.seed)
            found = forecast_from(store, spec, outlook_for(self, search))
            url = store.url
        if found is not None:
            time.sleep(LOOK_SECONDS)  # What was done until here may have been over at once.
            now = look.until_now(threads_for(self.estimator))
            return found.doubted(f"The machine is busy now: {now.used}, so it may take much longer." if now else "")
        self._say(f"Training a few units: {url} has no earlier job of this trainer, its workers and data")
        pace, busy = rehearse(search, self.estimator, channels, notify=self._say, verbose=self._verbose)
        return outlook_for(self, search).forecast(pace, source=PROBE).doubted(busy.text if busy else "")

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
            time.sleep(1.0)
        if job.summary.get("wall_seconds") is not None:
            self._console.print(show_summary(job.name, status, self.objective_metric_name, job.summary))
        if status == "Failed":
            raise WarmbandError(f"tuning job {job.name} failed: {reason}")

    def stop_tuning_job(self) -> None:
        """Asks the job to stop, from any process: its trials end at their next report, and what was found is kept."""
        with Store(self._store) as store:
            store.request_stop(self._name())

    # ---- looking

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
                `resume`, not to look at the job or to load its models; a trainer of your own is needed for that, too.

        Raises:
            ConfigurationError: the record has no such job, or its trainer is a class of a user's own, and that is not
                allowed.
        """
        check_not_there_yet(job_details=job_details, estimator_cls=estimator_cls)
        with Store(store) as opened:
            job = opened.job(tuning_job_name)
        if not allow_code:
            own = [code for code in in_record(job.spec) if code.key == OWN_CLASS]
            check_allowed(own, False, f"job {tuning_job_name!r}", "attach() allow_code=True")
        tuner = made_with.tuner_of(cls, job, allow_code=allow_code, store=store)
        tuner._allowed = tuner._allowed if allow_code else frozenset()
        tuner.latest_tuning_job = TuningJob(name=tuning_job_name)
        return tuner

    def describe(self) -> dict[str, Any]:
        """The job in the form of SageMaker's Describe response, with its `Summary` beside.

        Times are datetimes in UTC, as SageMaker's client gives them: `json.dumps(described, default=str)`.
        """
        with Store(self._store) as store:
            return describe(store.job(self._name()), tuned_trials(store, self._name()))

    def best_training_job(self) -> str:
        """The name of the best trial.

        Raises:
            WarmbandError: none has reported a finite objective.
        """
        return self._best().trial_id

    def best_estimator(self, best_training_job: str | Mapping[str, Any] | None = None) -> Trainer:
        """A trainer with a trial's hyperparameters, the best's by default; its `model()` is what the trial trained.

        Args:
            best_training_job: a trial's name, or a dict that has it as "TrainingJobName"; None for the best trial.

        Raises:
            ConfigurationError: the job has no such trial.
            WarmbandError: none has reported a finite objective.
        """
        with Store(self._store) as store:
            trials = {trial.trial_id: trial for trial in tuned_trials(store, self._name())}
        chosen = trial_name(best_training_job) or self._best().trial_id
        if chosen not in trials:
            near = difflib.get_close_matches(chosen, trials, n=1)
            raise ConfigurationError(
                f"job {self._name()} has no trial {chosen!r}" + (f"; {near[0]!r}?" if near else "")
            )
        trial = trials[chosen]
        length = dict.fromkeys(self.estimator.resource_names[:1], trial.resource)
        return self.estimator.with_hyperparameters({**trial.hyperparameters, **length}).trained(
            trial.checkpoint, dropped(chosen)
        )

    def analytics(self) -> HyperparameterTuningJobAnalytics:
        """The job's trials as a DataFrame."""
        return HyperparameterTuningJobAnalytics(self._name(), store=self._store)

    def hyperparameter_ranges(self) -> dict[str, list[dict[str, Any]]]:
        """The ranges by kind, in the API's form."""
        return made_with.by_kind(self.ranges)

    def plan(self) -> Plan:
        """The brackets of the job, before it starts."""
        return plan_of(self)

    def _repr_html_(self) -> str:
        """For notebooks: the job, or before `fit` the plan."""
        from hpo.report import job_html, plan_html

        if self.latest_tuning_job is not None:
            return job_html(self._name(), self._store)
        aim = f"{self.objective_type} the {self.objective_value} value of {self.objective_metric_name}."
        title = f"{self.strategy}, {self.max_jobs} trials, {self.max_parallel_jobs} at once"
        return plan_html(title, aim, self.plan(), {name: bounds.to_json() for name, bounds in self.ranges.items()})

    # ---- within

    def _ended(self, ended: Ended) -> None:
        if ended.status == "Failed":
            raise WarmbandError(f"tuning job {self._name()} failed: {ended.reason}")
        if ended.reason == INTERRUPTED:
            raise KeyboardInterrupt
        if ended.reason == TERMINATED:
            raise SystemExit(EXIT_CODES[TERMINATED])  # As the process would have ended without a job.

    def _apart(self) -> JobsServer | None:
        """Where the job goes that another process runs; what cannot follow it there is refused."""
        background.check_can_follow(self)
        return background.cluster_for(self)

    def _started(
        self,
        server: JobsServer | None,
        *,
        resume: bool = False,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        name = self._name()
        where = background.start(name, self._store, server, resume=resume, allowed=self._allowed, limits=limits)
        self._say(f"{name} runs {where}")
        self._say(f"Look with: hpo logs {name} --follow, hpo describe {name}; stop with: hpo stop {name}")

    def _announce(self, name: str, plan: Plan, forecast: Forecast | None, record: str) -> None:
        if whereabouts.ray_job():
            self._say(f"{whereabouts.RECORD}{record}")  # Whoever submitted the job waits for this line.
        self._say(f"Tuning job {name}: {self.strategy}, {self.max_jobs} trials, {self.max_parallel_jobs} at once")
        self._console.print(show_plan(plan))
        if forecast is not None:
            self._say(forecast.text)
        for warning in warnings(self):
            self._say(f"warning: {warning}")

    def _say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False)

    def _spec(self, inputs: Mapping[str, Any], seed: int) -> dict[str, Any]:
        return made_with.spec_of(self, inputs, seed)

    def _name(self) -> str:
        if self.latest_tuning_job is None:
            raise ConfigurationError("No tuning job available: call fit() first, or attach() to a job by its name")
        return self.latest_tuning_job.name

    def _job(self) -> JobRow:
        with Store(self._store) as store:
            return store.job(self._name())

    def _best(self) -> TrialRow:
        with Store(self._store) as store:
            best = best_trial(store.job(self._name()), tuned_trials(store, self._name()))
        if best is None:
            raise WarmbandError(f"Best training job not available for tuning job: {self._name()}")
        return best
