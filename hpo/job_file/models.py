"""A job file's models: typed, checked, and turned into a tuner and its channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from hpo.job_file.channels import Data
from hpo.job_file.cost_models import Cost
from hpo.job_file.known_keys import PLACE, Give, Positive, Strict, options_model, own_fields
from hpo.job_file.part_models import Completion, Hyperband, SearchPart, WarmStart, code_of, strategy_of_parts
from hpo.job_file.range_models import Range
from hpo.job_file.tracker_models import NoticeSpec, Trackers
from hpo.job_file.trainer_models import TrainerSpec
from hpo.job_file.wording import placed
from hpo.job_file.yaml_file import JobFile
from hpo.jobs import OF_SEVERAL, NamedCode, Options, declared, look_here_too
from hpo.notices import check_notices
from hpo.strategies import (
    STRATEGIES,
    HyperbandStrategyConfig,
    RayTuneStrategy,
    Strategy,
    StrategyConfig,
    TuningJobCompletionCriteriaConfig,
    check_known,
    run_all,
    strategy_code,
    strategy_from_json,
)
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from hpo.jobs import JobSettings
    from hpo.notices import Email, Webhook
    from hpo.observers import Callback
    from trainers.trainer import Trainer

_TuningOptions, _JobOptions = options_model("tuning"), options_model("")
_TrainingOptions, _TrainingJobOptions = options_model("tuning", but=OF_SEVERAL), options_model("", but=OF_SEVERAL)


TRAINS_ONCE = "trains_once"
"""Key of a validation's context: the group `tuning` is read for a single training, and needs no ranges."""


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
        if not ranges and not before.data.get("autotune") and not (before.context or {}).get(TRAINS_ONCE):
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


class Training(_TrainingOptions):  # type: ignore[misc, valid-type]  # made of the declarations of options
    """A single training. What is not made into something else goes to `TrainingJob` under its own name."""

    objective_metric_name: Annotated[str | None, Give("text such as validation:auc")] = Field(
        None, description="the metric whose value stands for the training; null is none"
    )
    objective_type: Literal["Maximize", "Minimize"] = Field("Maximize", description="which end of it is the better one")
    checkpoint_every: Positive | None = Field(
        None,
        description="units (boosting rounds, epochs) between checkpoints, from which the training goes on; null is a "
        "tenth of it",
    )
    max_runtime_in_seconds: Positive | None = Field(
        None, description="the job stops after this long, with a checkpoint; null is no limit"
    )
    random_seed: Annotated[int, Field(ge=0)] | None = Field(
        None, description="of the training's random numbers; null draws one and records it"
    )

    @classmethod
    def of(cls, tuning: Tuning) -> Self:
        """What a tuning job's group says that is about a single training, too."""
        return cls(**{name: getattr(tuning, name) for name in cls.model_fields if hasattr(tuning, name)})


class _Head(Strict):
    """The first keys of a job file."""

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

    _file: JobFile | None = PrivateAttr(None)
    """What it was read from, which knows the line of each key."""

    def channels(self, data_dir: str | None) -> dict[str, Any]:
        """The channels, as `HyperparameterTuner.fit` takes them."""
        return self.data.open(data_dir) if self.data else {}

    def code(self) -> list[NamedCode]:
        """The Python code that it names, which would be imported and called."""
        channels = (self.data and self.data.channels) or {}
        of_data = [code for name, files in channels.items() for code in files.code(f"data.channels.{name}")]
        return [*self.trainer.code(), *of_data]


class _Tail(Strict):
    """The last keys of a job file, before Warmband's own options."""

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
    notices: Annotated[
        dict[str, NoticeSpec], Give("names and entries, such as {ops: {type: webhook, url: https://example.org/hook}}")
    ] = Field(default_factory=dict, description="who is told of the job's end and of its budget, by names of your own")

    def entries(self) -> dict[str, Webhook | Email]:
        """The notices' entries in the Python API's form."""
        return check_notices({name: notice.entry() for name, notice in self.notices.items()})

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        self.entries()
        return self


class _TuningKeys(_Head):
    tuning: Tuning = Field(description="what to search, and how")


class _TrainingKeys(_Head):
    training: Training | None = Field(
        None, description="the limits of a single training, and what stands for it; null is nothing of that"
    )
    tuning: Tuning | None = Field(
        None,
        description="of a tuning job's file: objective, limits and seed; each hyperparameter that has a range needs a "
        "value under trainer.hyperparameters",
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.training is not None and self.tuning is not None:
            raise ConfigurationError("training and tuning are both there; give one of them")
        return self


class JobSpec(_JobOptions, _Tail, _TuningKeys):  # type: ignore[misc, valid-type]  # made of the declarations of options
    """A tuning job."""

    def code(self) -> list[NamedCode]:
        """See `_Head.code`; a strategy of a user's own is code, too."""
        named = super().code()
        own = len(self.trainer.code())
        return [*named[:own], *self.tuning.code(), *named[own:]]

    def arguments(self) -> dict[str, Any]:
        """The arguments of `HyperparameterTuner`, by name."""
        from hpo.jobs import JobSettings

        trainer, cost = _trainer_and_cost(self)
        with placed(self._file, "tuning"):
            own = own_fields(self, *_NOT_OPTIONS, "tuning")
            tuning = self.tuning.arguments()
            options = {name: value for name, value in {**own, **tuning}.items() if name in declared()}
            settings = {name: value for name, value in tuning.items() if name not in options}
            made = JobSettings(
                estimator=trainer,
                ranges=settings.pop("hyperparameter_ranges"),
                **settings,
                **cost,
                tags=_tags(self),
                notices=self.entries(),
                options=Options(**options),  # type: ignore[typeddict-item]
            )
        return {**made.arguments(), "store": self.store, "callbacks": _callbacks(self)}


class TrainingSpec(_TrainingJobOptions, _Tail, _TrainingKeys):  # type: ignore[misc, valid-type]  # as above
    """A single training."""

    def settings(self) -> JobSettings:
        """The job's settings."""
        from hpo.jobs import JobSettings

        trainer, cost = _trainer_and_cost(self)
        group = "tuning" if self.training is None and self.tuning is not None else "training"
        with placed(self._file, group):
            own = own_fields(self, *_NOT_OPTIONS, "training", "tuning")
            self._check_fixed(trainer.hyperparameters)
            given = self.training or (Training.of(self.tuning) if self.tuning else Training())
            options = {name: value for name, value in {**own, **own_fields(given)}.items() if name in declared()}
            settings = {name: value for name, value in own_fields(given).items() if name not in options}
            return JobSettings.for_training(
                trainer,
                **settings,
                **cost,
                tags=_tags(self),
                notices=self.entries(),
                options=Options(**options),  # type: ignore[typeddict-item]
            )

    def arguments(self) -> dict[str, Any]:
        """The arguments of `TrainingJob.of`, by name."""
        return {"settings": self.settings(), "store": self.store, "callbacks": _callbacks(self)}

    def _check_fixed(self, values: Mapping[str, Any]) -> None:
        for name in self.tuning.ranges if self.tuning else ():
            if name not in values:
                raise ConfigurationError(
                    f"hyperparameter {name!r} has a range and no value, and a training tries one; give it one under "
                    f"trainer.hyperparameters, or run hpo tune"
                )


_NOT_OPTIONS = (*_Head.model_fields, *_Tail.model_fields)


def _trainer_and_cost(spec: Any) -> tuple[Trainer, dict[str, Any]]:
    """The trainer of a job file, and the arguments that are about money."""
    from hpo.jobs import check_cost

    with placed(spec._file, "trainer"):
        trainer = spec.trainer.trainer()
    cost = spec.cost.arguments() if spec.cost else {}
    with placed(spec._file, "cost"):
        check_cost(trainer, **cost)
    return trainer, cost


def _tags(spec: _Tail) -> list[dict[str, str]] | None:
    return [{"Key": key, "Value": value} for key, value in spec.tags.items()] or None


def _callbacks(spec: _Tail) -> Sequence[Callback]:
    return spec.trackers.callbacks() if spec.trackers else ()
