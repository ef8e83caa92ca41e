"""A job file's models: typed, checked, and turned into a tuner and its channels."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from hpo.job_file.cost_models import Cost
from hpo.job_file.known_keys import LIKENESS, PLACE, Give, Strict, options_model, own_fields
from hpo.job_file.part_models import SearchPart, code_of, strategy_of_parts
from hpo.job_file.range_models import Range
from hpo.job_file.tracker_models import Trackers
from hpo.job_file.trainer_models import TrainerSpec
from hpo.job_file.wording import placed
from hpo.job_file.yaml_file import JobFile
from hpo.jobs import NamedCode, Options, declared, look_here_too
from hpo.strategies import (
    STRATEGIES,
    HyperbandStrategyConfig,
    RayTuneStrategy,
    Strategy,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
    WarmStartConfig,
    check_known,
    lay_out,
    run_all,
    strategy_code,
    strategy_from_json,
)
from trainers.channels import ROLES, Distribution
from trainers.checking import did_you_mean
from trainers.datasets import DATASETS
from trainers.errors import ConfigurationError

Positive = Annotated[int, Field(ge=1)]
Column = Annotated[str | int | None, Give("a column's name, or its position")]
Columns = Annotated[str | int | list[str | int] | None, Give("a column, or a list of columns")]

OF_ROWS = ("target", *ROLES, "categorical", "header", "delimiter")
"""Keys of a channel that is read as rows."""

_TuningOptions, _JobOptions = options_model("tuning"), options_model("")


class Files(Strict):
    """Where a channel's rows are, or its files as they are."""

    path: Annotated[str | list[str] | None, Give("a path, or a list of paths")] = Field(
        None,
        description="CSV or Parquet files, which are read as rows: a path, a folder, a pattern such as part-*.csv, a "
        "URI (s3://, gs://), or a list of these; null where a folder is given",
    )
    folder: Annotated[str | None, Give("a folder's path, or its URI")] = Field(
        None, min_length=1, description="files of any kind, as they are, for a trainer of type script; null is rows"
    )
    distribution: Distribution = Field(
        "FullyReplicated",
        description="of a folder: FullyReplicated gives all files to every worker, ShardedByS3Key deals them out",
    )
    target: Column = Field(None, description="the column to predict, by name or position from 0; null is the first")
    weight: Column = Field(None, description="the column of rows' weights; null weighs all alike")
    base_margin: Columns = Field(None, description="margins that boosting begins at: a column, or one for each class")
    label_lower_bound: Column = Field(None, description="the column of what a label is at least, for survival:aft")
    label_upper_bound: Column = Field(None, description="that of what it is at most; infinite where nobody knows")
    qid: Column = Field(None, description="that of the query whose rows are ranked, which go to one worker together")
    categorical: Columns = Field(None, description="columns of categories, text or whole numbers")
    header: bool | None = Field(None, description="whether a CSV file's first line has names; null looks for itself")
    delimiter: Annotated[str, Give("one character, such as ';'")] = Field(
        ",", min_length=1, max_length=1, description="what separates the cells of a CSV file"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.path is None) == (self.folder is None):
            raise ConfigurationError("give either path, for rows, or folder, for files as they are")
        if given := self.model_fields_set & set(OF_ROWS if self.folder is not None else ["distribution"]):
            raise ConfigurationError(
                f"{min(given)} is for {'rows' if self.folder else 'a folder, and path reads rows'}; leave it out"
            )
        return self

    def open(self, name: str) -> Any:
        """The channel of that name."""
        from trainers.channels import Channel, Folder

        if self.folder is not None:
            return Channel.of(Folder(self.folder, self.distribution), name=name)
        return Channel.of(self.path, name=name, **{key: getattr(self, key) for key in OF_ROWS})


class Data(Strict):
    """Either a named dataset, or files by channel."""

    dataset: str | None = Field(None, description="a dataset that has a name: see `hpo data list`")
    repeat: Positive = Field(1, description="how often each train and validation row of the dataset appears")
    channels: Annotated[dict[str, Files] | None, Give("names and files, such as {train: {path: train.csv}}")] = Field(
        None, description="files by the channel's name; train is what models learn from, the others score them"
    )

    @field_validator("dataset")
    @classmethod
    def _known(cls, dataset: str | None) -> str | None:
        if dataset is not None and dataset not in DATASETS:
            near = did_you_mean(dataset, DATASETS, LIKENESS)
            raise ConfigurationError(f"there is no dataset {dataset!r}; give one of {', '.join(DATASETS)}{near}")
        return dataset

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.dataset is None) == (self.channels is None):
            raise ConfigurationError("give either dataset or channels")
        channels = self.channels or {}
        rows = [name for name, files in channels.items() if files.folder is None]  # Who takes folders, takes any names.
        if self.channels is not None and "train" not in channels and (rows or not channels):
            raise ConfigurationError(f"channels are {', '.join(self.channels) or 'none'}; give one called train")
        return self

    def open(self, data_dir: str | None) -> dict[str, Any]:
        """The channels, as `HyperparameterTuner.fit` takes them."""
        if self.channels is not None:
            return {name: files.open(name) for name, files in self.channels.items()}
        from hpo.jobs import dataset_channels

        return dict(dataset_channels(str(self.dataset), data_dir=data_dir, repeat=self.repeat))


class Hyperband(Strict):
    """Hyperband's own configuration, in units of resource: boosting rounds, epochs."""

    max_resource: Positive = Field(
        description="units of a trial that runs to the end, instead of num_round or epochs; one unit is a boosting "
        "round, or an epoch"
    )
    min_resource: Positive = Field(1, description="units before a trial can be stopped")
    reduction_factor: Annotated[int, Field(ge=2)] = Field(3, description="one trial in so many goes on at each rung")
    suggestions: Literal["model", "random"] = Field(
        "model", description="model tries what a Gaussian process expects most of; random draws at random"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        lay_out(1, self.min_resource, self.max_resource, self.reduction_factor)
        return self


class Completion(Strict):
    """Criteria that end a job before all its trials have run; the first that is met decides."""

    target_objective_metric_value: float | None = Field(
        None, description="the job ends when a trial reaches this value at a rung, or at its end"
    )
    max_number_of_training_jobs_not_improving: Annotated[int, Field(ge=3)] | None = Field(
        None, description="the job ends when so many trials in a row have not improved the best objective by 1%"
    )
    complete_on_convergence: bool = Field(
        False,
        description="the job ends when the best objective has stood for a while and a model of all results expects "
        "little more",
    )


class WarmStart(Strict):
    """Earlier jobs of the record."""

    type: Literal["IdenticalDataAndAlgorithm", "TransferLearning"] = Field(
        description="IdenticalDataAndAlgorithm takes their values as the job's own; TransferLearning the order of each "
        "one's values, of other data or another trainer"
    )
    parents: list[str] = Field(min_length=1, max_length=5, description="their names")

    def config(self) -> WarmStartConfig:
        """In the Python API's form."""
        return WarmStartConfig(self.type, self.parents)


class Search(Strict):
    """Fields of the search beside Warmband's own options."""

    objective_metric_name: Annotated[str, Give("text such as validation:auc")] = Field(
        description="what trials are compared by: a channel, a colon and one of the trainer's metrics"
    )
    objective_type: Literal["Maximize", "Minimize"] = Field("Maximize", description="which end of it is the better one")
    strategy: Annotated[str, Give(f"one of {', '.join(STRATEGIES)}, or a module and a class, such as shop:Halves")] = (
        Field(
            "Hyperband",
            description="Hyperband stops trials that fall behind, and ASHA does without waiting for a rung to fill; "
            "Bayesian and Random train all to the end, what a model expects most of or drawn at random, and Grid every "
            "combination of ranges that are categorical, integer or of steps; module:name is a strategy of your own, "
            "which runs with --allow-code alone",
            json_schema_extra={"anyOf": [{"enum": [*STRATEGIES]}, {"pattern": PLACE}]},
        )
    )
    strategy_options: dict[str, Any] = Field(
        default_factory=dict, description="what the class of a strategy of your own takes"
    )
    hyperband: Hyperband | None = Field(
        None,
        description="for Hyperband and ASHA; null trains from 1 unit to the trainer's num_round, or epochs",
    )
    searcher: SearchPart | None = Field(
        None, description="what suggests in the place of a strategy: a searcher of Ray Tune's or a sampler of Optuna's"
    )
    scheduler: SearchPart | None = Field(None, description="what stops trials in the place of a strategy: Ray Tune's")
    max_jobs: Positive | None = Field(
        None, description="trials in all; null is 1, and with Grid as many as there are combinations"
    )
    max_parallel_jobs: Positive = Field(1, description="trials at once; each holds a gang of workers")
    max_runtime_in_seconds: Positive | None = Field(
        None, description="the job stops after this long, with what it has found; null is no limit"
    )
    early_stopping_type: Literal["Off", "Auto"] = Field(
        "Off",
        description="Auto stops a trial that is behind the median of those before it, at a ninth or a third of its "
        "length; not for Hyperband and ASHA, which stop trials themselves",
    )
    completion: Completion | None = Field(None, description="what else ends the job early; null is nothing")
    warm_start: WarmStart | None = Field(
        None, description="earlier jobs whose results a strategy with a model learns from; null is none"
    )
    random_seed: Annotated[int, Field(ge=0)] | None = Field(
        None, description="the same seed gives the same trials, rungs and winner; null draws one and records it"
    )
    autotune: bool = Field(
        False, description="choose ranges, length and budget that are not given, for XGBoost and for PyTorch by name"
    )
    hyperparameters_to_keep_static: list[str] | None = Field(
        None, description="names of the trainer's hyperparameters that autotune leaves as they are"
    )
    ranges: Annotated[dict[str, Range], Give("names of hyperparameters and their ranges")] = Field(
        default_factory=dict,
        validate_default=True,
        description="what to tune: a hyperparameter's name, and the range to search; one at least without autotune",
    )

    @field_validator("ranges")
    @classmethod
    def _some(cls, ranges: dict[str, Range], before: ValidationInfo) -> dict[str, Range]:
        if not ranges and not before.data.get("autotune"):
            raise ConfigurationError("no ranges; give names of hyperparameters and their ranges, or autotune: true")
        return ranges

    points_to_evaluate: Annotated[list[dict[str, Any]], Give("a list of names and values, such as [{eta: 0.3}]")] = (
        Field(
            default_factory=list,
            description="values for the first trials; what a point leaves out is the searcher's; not with Grid",
        )
    )

    takes_effect: Annotated[
        dict[str, int | str] | None, Give("names and units, such as {decay_at: decay_at, eta_after: decay_at}")
    ] = Field(
        None,
        description="the unit from which a hyperparameter takes effect: a number, or the name of the one whose value "
        "it is; what trials have in common until then is trained once. null is the beginning, for all",
    )

    @field_validator("strategy")
    @classmethod
    def _known(cls, strategy: str) -> str:
        check_known(strategy)
        return strategy

    def code(self) -> list[NamedCode]:
        """What it names of Python code, which would be imported and called."""
        own = strategy_code(self.strategy, None).items()
        parts = code_of({"searcher": self.searcher, "scheduler": self.scheduler})
        return [*(NamedCode(key=f"tuning.{key}", name=name) for key, name in own), *parts]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.ranges:
            if not name or "/" in name:
                raise ConfigurationError(f"ranges has the name {name!r}; give a hyperparameter's name, without '/'")
        if self.strategy not in StrategyConfig.strategies and self.hyperband is not None:
            names = " or ".join(StrategyConfig.strategies)
            raise ConfigurationError(f"hyperband is for the strategy {names}, not for {self.strategy}; leave it out")
        given = "hyperband" if self.hyperband else "strategy" if "strategy" in self.model_fields_set else ""
        if given and self._parts is not None:
            raise ConfigurationError(
                f"{given} is given beside searcher or scheduler, which take its place; leave it out"
            )
        run_all(self.max_jobs or 1, 1)
        return self

    @property
    def _parts(self) -> RayTuneStrategy | None:
        return strategy_of_parts(self.searcher, self.scheduler)


_MADE = ("strategy_options", "hyperband", "searcher", "scheduler", "completion", "warm_start")
"""Fields that others are made of."""


class Tuning(_TuningOptions, Search):  # type: ignore[misc, valid-type]  # made of the declarations of options
    """The search. What is not made into something else goes to `HyperparameterTuner` under its own name."""

    def arguments(self) -> dict[str, Any]:
        """In the Python API's form."""
        return {
            **own_fields(self, "ranges", *_MADE),
            "hyperparameter_ranges": {name: bounds.parameter() for name, bounds in self.ranges.items()},
            "strategy": self._strategy(),
            "strategy_config": self.hyperband
            and StrategyConfig(HyperbandStrategyConfig(**self.hyperband.model_dump())),
            "warm_start_config": self.warm_start and self.warm_start.config(),
            "completion_criteria_config": self.completion
            and TuningJobCompletionCriteriaConfig(**self.completion.model_dump()),
        }

    def _strategy(self) -> str | Strategy:
        if self.code():
            look_here_too()
        elif not self.strategy_options and not (self.autotune and self.strategy == "Bayesian"):
            # For the constructor's default, autotune takes another; a file's is meant.
            return self._parts or self.strategy
        return self._parts or strategy_from_json(self.strategy, self.strategy_options)


class JobKeys(Strict):
    """Fields of a job file beside Warmband's own options."""

    name: Annotated[str | None, Give("at most 32 letters, digits and hyphens, no hyphen first or last")] = Field(
        None,
        pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?$",
        max_length=32,
        description="what the job is called, once in a store; null makes a name with the time in it",
    )
    data: Annotated[Data | None, Give("a group of keys")] = Field(
        None,
        description="what to train on: a dataset that has a name, or files; null is nothing, for a trainer of type "
        "script alone, whose program finds its own",
    )
    trainer: TrainerSpec = Field(description="how one trial is trained")
    tuning: Tuning = Field(description="what to search, and how")
    cost: Cost | None = Field(None, description="what workers cost, and the most that the job may; null is unknown")
    store: str | None = Field(
        None, description="database URL of the record; null is WARMBAND_STORE, or a file in WARMBAND_HOME"
    )

    tags: dict[str, str] = Field(
        default_factory=dict, description="words of your own and their values, kept with the job and in Ray's metadata"
    )
    trackers: Annotated[Trackers | None, Give("a group of keys, such as {tensorboard: {folder: runs}}")] = Field(
        None, description="what else the job is logged to; a tracker that fails is left out, and the job goes on"
    )


class JobSpec(_JobOptions, JobKeys):  # type: ignore[misc, valid-type]  # made of the declarations of options
    """A tuning job."""

    _file: JobFile | None = PrivateAttr(None)
    """What it was read from, which knows the line of each key."""

    def code(self) -> list[NamedCode]:
        """The Python code that it names, which would be imported and called."""
        return [*self.trainer.code(), *self.tuning.code()]

    def channels(self, data_dir: str | None) -> dict[str, Any]:
        """The channels, as `HyperparameterTuner.fit` takes them."""
        return self.data.open(data_dir) if self.data else {}

    def arguments(self) -> dict[str, Any]:
        """The arguments of `HyperparameterTuner`, by name."""
        from hpo.jobs import JobSettings, check_cost

        with placed(self._file, "trainer"):
            trainer = self.trainer.trainer()
        cost = self.cost.arguments() if self.cost else {}
        with placed(self._file, "cost"):
            check_cost(trainer, **cost)
        with placed(self._file, "tuning"):
            own = own_fields(self, "name", "data", "trainer", "tuning", "cost", "tags", "trackers", "store")
            tuning = self.tuning.arguments()
            options = {name: value for name, value in {**own, **tuning}.items() if name in declared()}
            settings = {name: value for name, value in tuning.items() if name not in options}
            tags = [{"Key": key, "Value": value} for key, value in self.tags.items()]
            made = JobSettings(
                estimator=trainer,
                ranges=settings.pop("hyperparameter_ranges"),
                **settings,
                **cost,
                tags=tags or None,
                options=Options(**options),  # type: ignore[typeddict-item]
            )
        return {
            **made.arguments(),
            "store": self.store,
            "callbacks": self.trackers.callbacks() if self.trackers else (),
        }


def json_schema() -> dict[str, Any]:
    """The JSON schema of job files, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **JobSpec.model_json_schema(),
        "title": "Warmband tuning job",
    }
