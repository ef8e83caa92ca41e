"""`JobSettings`: the description of a job for tuner, job files, record, drivers and command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Self

from hpo.autotune import Autotuned, check_static, chosen
from hpo.cost import Prices, Tariff
from hpo.estimators import ranges_of
from hpo.forks import check_effects
from hpo.jobs.checks import check_arguments, check_cost, check_limits, longest
from hpo.jobs.options import Options, complete, declared
from hpo.notices import Email, Webhook, check_notices, entries_from_json
from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    ParameterRange,
    range_from_json,
)
from hpo.record import KIND, TRAINING, JobRow, environment, tags_from, tags_of
from hpo.strategies import (
    Plan,
    Strategy,
    StrategyConfig,
    TrainingStrategy,
    TuningJobCompletionCriteriaConfig,
    UnknownLengthError,
    WarmStartConfig,
    as_given,
    check_plan,
    check_points,
    configurations_for,
    name_in_record,
    repeated,
    strategy_code,
    strategy_of,
    with_median_rule,
)
from trainers.errors import ConfigurationError
from trainers.length import no_length
from trainers.plain import plain, plain_scalar
from trainers.registry import trainer_from_json
from trainers.trainer import Trainer
from trainers.tunable import late_obstacle

_PLAIN = (
    "objective_type",
    "max_jobs",
    "max_parallel_jobs",
    "max_runtime_in_seconds",
    "max_cost",
    "base_tuning_job_name",
    "early_stopping_type",
    "estimator_name",
    "points_to_evaluate",
    "hyperparameters_to_keep_static",
    "takes_effect",
)
"""Settings that are JSON as they are; a record of an older Warmband may lack some."""

_KINDS: dict[str, tuple[type[ParameterRange], ...]] = {
    "ContinuousParameterRanges": (ContinuousParameter, NormalParameter),
    "CategoricalParameterRanges": (CategoricalParameter,),
    "IntegerParameterRanges": (IntegerParameter,),
}


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Settings of a tuning job, or of a single training.

    Args:
        estimator: the trainer.
        objective_metric_name: "channel:metric"; empty for a training that is compared with nothing.
        ranges: a range a tuned hyperparameter.
        strategy: "Bayesian", "Hyperband", "ASHA", "Random" or "Grid", or one of a user's own.
        objective_type: "Maximize" or "Minimize".
        max_jobs: trials in all; None is 1, and with Grid every combination.
        max_parallel_jobs: trials at once.
        max_runtime_in_seconds: of the job.
        tags: as the tuner takes them; kept as texts by name.
        base_tuning_job_name: what the job's name begins with.
        strategy_config: Hyperband's own configuration.
        completion_criteria_config: what ends the job before all its trials have run.
        warm_start_config: earlier jobs whose results a strategy with a model learns from.
        early_stopping_type: "Off", or "Auto" for the median rule.
        estimator_name: kept in the record.
        random_seed: None draws one where the job begins.
        prices: what workers cost.
        max_cost: the most that the job may cost.
        points_to_evaluate: values for the first trials, one after the other; what one leaves out is the searcher's.
        takes_effect: units from which hyperparameters take effect, by name: a number, or the name of the hyperparameter
            whose value it is; those that are left out do from the beginning.
        autotune: True chooses ranges, length and budget that are not given; then it is what was chosen.
        hyperparameters_to_keep_static: the trainer's own that are not tuned then.
        notices: who is told of the job's end and of its budget, by name.
        options: what SageMaker's class lacks; those that are left out have their defaults.
        planned: the brackets that the record has, where the job began; they may have been grown since.

    Raises:
        ConfigurationError: a value is wrong, or asks for what is not there yet.
    """

    estimator: Trainer
    objective_metric_name: str
    ranges: Mapping[str, ParameterRange]
    strategy: str | Strategy = "Bayesian"
    objective_type: str = "Maximize"
    max_jobs: int | None = None
    max_parallel_jobs: int = 1
    max_runtime_in_seconds: int | None = None
    tags: Any = None
    base_tuning_job_name: str | None = None
    strategy_config: StrategyConfig | None = None
    completion_criteria_config: TuningJobCompletionCriteriaConfig | None = None
    warm_start_config: WarmStartConfig | None = None
    early_stopping_type: str = "Off"
    estimator_name: str | None = None
    random_seed: int | None = None
    prices: Prices | None = None
    max_cost: float | None = None
    points_to_evaluate: Sequence[Mapping[str, Any]] | None = None
    takes_effect: Mapping[str, int | str] | None = None
    autotune: bool | Autotuned = False
    hyperparameters_to_keep_static: Sequence[str] | None = None
    notices: Mapping[str, Webhook | Email] | None = None
    options: Options = field(default_factory=Options)
    planned: Plan | None = None
    tariff: Tariff | None = field(init=False)
    """The price of a worker; None without prices."""
    search_strategy: Strategy = field(init=False, compare=False)
    """The strategy itself, made with its configuration."""

    def __post_init__(self) -> None:
        for name in _GIVEN_PLAIN:
            object.__setattr__(self, name, _plain(name, getattr(self, name)))
        if isinstance(self.ranges, Mapping):
            object.__setattr__(self, "ranges", {plain_scalar(name): bounds for name, bounds in self.ranges.items()})
        self._choose()
        check_arguments(**{each.name: getattr(self, each.name) for each in fields(self) if each.name in CHECKED})
        options = complete(self.options)
        check_limits(max_wait=options["max_wait"], max_runtime_in_seconds=self.max_runtime_in_seconds)
        strategy = strategy_of(self.strategy, self.strategy_config)
        ranges, repeats = ranges_of(self.estimator, self.ranges), options["repeats"]
        configurations = configurations_for(strategy, ranges, repeats, self.max_jobs)
        estimator = self.estimator
        fixed = (*estimator.resource_names, *estimator.fixed_names)
        late = partial(late_obstacle, estimator)
        check_effects(self.takes_effect, ranges, estimator.hyperparameters, fixed, late)
        settled = {
            "ranges": ranges,
            "max_jobs": configurations * repeats,
            "points_to_evaluate": check_points(self.points_to_evaluate, ranges, strategy, configurations),
            "tags": tags_from(self.tags),
            "notices": check_notices(self.notices),
            "options": options,
            "search_strategy": strategy,
            "tariff": check_cost(self.estimator, self.prices, self.max_cost),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        self.plan()

    @classmethod
    def for_training(
        cls,
        estimator: Trainer,
        *,
        objective_metric_name: str | None = None,
        checkpoint_every: int | None = None,
        options: Options | None = None,
        **settings: Any,
    ) -> Self:
        """The settings of a single training.

        Args:
            estimator: the trainer, with all its hyperparameters.
            objective_metric_name: "channel:metric", whose best value is kept; None for none.
            checkpoint_every: units between checkpoints, from which it goes on; None is a tenth of the training, or none
                where the trainer would begin again at each.
            options: as above, without those that are about several trials.
            **settings: `objective_type`, `max_runtime_in_seconds`, `random_seed`, `tags`, `prices`, `max_cost` and
                `notices`.

        Raises:
            ConfigurationError: a value is wrong, or the trainer does not say how long it trains.
        """
        if isinstance(estimator, Trainer) and checkpoint_every is None and estimator.pause_obstacle(stops_only=True):
            checkpoint_every = estimator.whole_length()
        if (options or {}).get("objective_value") == "best" and not objective_metric_name:
            raise ConfigurationError("objective_value is 'best', and nothing says of what; give objective_metric_name")
        return cls(
            estimator=estimator,
            objective_metric_name=objective_metric_name or "",
            ranges={},
            strategy=TrainingStrategy(checkpoint_every),
            options=Options(**{**(options or {}), "num_to_keep": None}),
            **settings,
        )

    @property
    def is_training(self) -> bool:
        """Whether it is a single training, and no search."""
        return self.search_strategy.trains_once

    def _choose(self) -> None:
        """Chooses what its user leaves to autotune."""
        if not isinstance(self.autotune, bool | Autotuned):
            raise ConfigurationError(f"autotune is {self.autotune!r}; give True or False")
        if not isinstance(self.estimator, Trainer) or not isinstance(self.ranges, Mapping):
            return  # Which is refused next.
        keep, static = self.hyperparameters_to_keep_static, self.estimator.hyperparameters
        check_static(keep, autotune=bool(self.autotune), static=static, ranges=self.ranges)
        if self.autotune is True:
            asked = {name: getattr(self, name) for name in CHOSEN} | {"ranges": dict(self.ranges)}
            for name, value in chosen(keep, complete(self.options)["repeats"], **asked).items():
                object.__setattr__(self, name, value)

    def plan(self) -> Plan:
        """The brackets of the job: those of the record, where it began."""
        if self.planned is not None:
            return self.planned
        lengths, static = self.estimator.lengths, self.estimator.hyperparameters
        given = {**static, **self.ranges}
        for length in lengths:
            length.check_given(given)
        units = longest(lengths, self.ranges, static)
        configurations = (self.max_jobs or 1) // self.options["repeats"]
        try:
            laid_out = self.search_strategy.plan(self.ranges, configurations, units)
        except UnknownLengthError as error:
            missing = [length for length in lengths if longest([length], self.ranges, static) is None]
            raise ConfigurationError(no_length(missing, given, error.settings)) from error
        plan = check_plan(laid_out, configurations, self.strategy_name)
        return repeated(with_median_rule(plan) if self.early_stopping_type == "Auto" else plan, self.options["repeats"])

    @property
    def strategy_name(self) -> str:
        """What the record calls the strategy."""
        return name_in_record(self.search_strategy)

    def code(self) -> dict[str, str]:
        """The user's own code that the job runs, as "module:name" by what it was given as."""
        return {**self.estimator.code(), **strategy_code(self.strategy_name, self.search_strategy.options)}

    def changed(self, **changes: Any) -> Self:
        """The same settings with some changed, options among them; the brackets are laid out anew."""
        options = {name: value for name, value in changes.items() if name in declared()}
        own = {name: value for name, value in changes.items() if name not in options}
        return replace(self, **{"planned": None, "options": {**self.options, **options}, **own})

    def value(self, name: str) -> Any:
        """A setting or an option, by name."""
        return self.options.get(name) if name in declared() else getattr(self, name)

    def arguments(self) -> dict[str, Any]:
        """The tuner's arguments, by name; options that have their defaults are left out."""
        own = {name: getattr(self, name) for name in SETTINGS if name != "ranges"}
        return {**own, "hyperparameter_ranges": self.ranges, "tags": self.tags or None, **self._given}

    @property
    def _given(self) -> dict[str, Any]:
        own: Mapping[str, Any] = self.options
        return {name: own[name] for name, (_, option) in declared().items() if own[name] != option.default}

    def to_json(self, inputs: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """The `spec` of a job's row: these settings, what the job reads and where it runs.

        Args:
            inputs: what it reads, as `record_inputs` gives it.
            seed: the job's, drawn if none was given.
        """
        config, criteria, warm_start = self.strategy_config, self.completion_criteria_config, self.warm_start_config
        return {
            **({KIND: TRAINING} if self.is_training else {}),
            "estimator": self.estimator.to_json(),
            "unit": self.estimator.unit,
            "objective_metric_name": self.objective_metric_name,
            "hyperparameter_ranges": {name: bounds.to_json() for name, bounds in self.ranges.items()},
            "parameter_ranges": by_kind(self.ranges),
            "strategy": self.strategy_name,
            "strategy_config": self.search_strategy.options or None,
            "refuses_given": self.search_strategy.refuses_given,
            "strategy_request": config.to_input_req() if config else None,
            "completion_criteria": criteria.to_json() if criteria else None,
            "completion_request": criteria.to_input_req() if criteria else None,
            "warm_start": warm_start.to_json() if warm_start else None,
            "warm_start_request": warm_start.to_input_req() if warm_start else None,
            "random_seed": seed,
            "autotune": self.autotune.to_json() if isinstance(self.autotune, Autotuned) else None,
            "inputs": dict(inputs),
            "environment": environment(),
            "prices": self.prices.to_json() if self.prices else None,
            "tags": self.tags,
            "notices": {name: entry.to_json() for name, entry in (self.notices or {}).items()},
            "tariff": self.tariff.to_json() if self.tariff else None,
            **{name: getattr(self, name) for name in _PLAIN},
            **self.options,
        }

    @classmethod
    def of(cls, job: JobRow, *, allow_code: bool) -> Self:
        """A job's settings out of the record.

        Args:
            job: its row.
            allow_code: import the user's code that it names; `check_record` asks first.

        Raises:
            ConfigurationError: it cannot be made again here.
        """
        spec = job.spec
        strategy, strategy_config = as_given(spec["strategy"], spec["strategy_config"])
        criteria, prices = spec.get("completion_criteria"), spec.get("prices")
        warm_start, autotuned = spec.get("warm_start"), spec.get("autotune")
        return cls(
            estimator=trainer_from_json(spec["estimator"], allow_code=allow_code),
            objective_metric_name=spec["objective_metric_name"],
            ranges={name: range_from_json(state) for name, state in spec["hyperparameter_ranges"].items()},
            strategy=strategy,
            strategy_config=strategy_config,
            completion_criteria_config=None
            if criteria is None
            else TuningJobCompletionCriteriaConfig.from_json(criteria),
            warm_start_config=None if warm_start is None else WarmStartConfig(**warm_start),
            random_seed=spec["random_seed"],
            autotune=False if autotuned is None else Autotuned.from_json(autotuned),
            tags=tags_of(spec.get("tags")) or None,
            notices=entries_from_json(spec.get("notices")),
            prices=None if prices is None else Prices.from_json(prices),
            options=Options(**{name: spec[name] for name in declared() if name in spec}),  # type: ignore[typeddict-item]
            planned=Plan.from_json(job.plan) if job.plan else None,
            **{name: spec[name] for name in _PLAIN if name in spec},
        )


_GIVEN_PLAIN = (*_PLAIN, "objective_metric_name", "random_seed", "tags", "takes_effect", "autotune", "options")
"""The settings that become plain Python values before anything reads them."""


def _plain(name: str, value: Any) -> Any:
    return plain(value, name) if isinstance(value, Mapping | list | tuple) else plain_scalar(value)


CHOSEN = (
    "estimator",
    "ranges",
    "strategy",
    "strategy_config",
    "early_stopping_type",
    "max_jobs",
    "completion_criteria_config",
)
"""The settings that autotune looks at, and may choose."""

SETTINGS = tuple(each.name for each in fields(JobSettings) if each.init and each.name not in ("options", "planned"))
"""The settings that are no options, by name."""

CHECKED = frozenset(SETTINGS) - {
    "tags",
    "prices",
    "max_cost",
    "points_to_evaluate",
    "takes_effect",
    "autotune",
    "hyperparameters_to_keep_static",
    "notices",
}


def by_kind(ranges: Mapping[str, ParameterRange]) -> dict[str, list[dict[str, Any]]]:
    """Ranges by kind, in the API's form."""
    return {
        key: [bounds.as_tuning_range(name) for name, bounds in ranges.items() if isinstance(bounds, kinds)]
        for key, kinds in _KINDS.items()
    }
