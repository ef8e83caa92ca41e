"""The strategy Hyperband: its configuration, its brackets, and what there is to warn of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hpo.ranges import ParameterRange
from hpo.strategies.hyperband.layouts import lay_out, lay_out_cutting
from hpo.strategies.hyperband.plan import Plan
from hpo.strategies.model_strategy import by_model
from hpo.strategies.openings import by_clock, by_number
from hpo.strategies.random_strategy import MAX_RESOURCE, at_random, length
from hpo.strategies.strategy import Prepared, Strategy, Task
from trainers.checking import check_whole
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar

SUGGESTIONS = ("model", "random")

FIRST_RUNG = 27
"""With a model, trials train to a rung first that is no less than this fraction of all their units."""

FEWEST = 4
"""Trials that have to be seen before a model is asked, in a small job. In others it is asked later, and finds more."""

LAG = 8
"""Trials between a suggestion and the last that it reads, at most, of up to as many at once; see `_lag`."""

SLACK = 1.5
"""With more at once, how many times as long as its units say a result may take before a suggestion waits for it."""


class HyperbandStrategyConfig:
    """Hyperband's resource, in units: one unit is one report, a boosting round or an epoch.

    Args:
        max_resource: units of a trial that runs to the end; trials stop there, whatever `num_round` says.
        min_resource: units before a trial can be stopped.
        reduction_factor: one trial in so many goes on at each rung.
        suggestions: "model" tries what a Gaussian process expects most of; "random" draws configurations at random.

    Raises:
        ConfigurationError: a value is no whole number or too small, `max_resource` is below `min_resource`, or
            `suggestions` is neither of the two.
    """

    def __init__(
        self, max_resource: int, min_resource: int, *, reduction_factor: int = 3, suggestions: str = "model"
    ) -> None:
        max_resource, min_resource = plain_scalar(max_resource), plain_scalar(min_resource)
        reduction_factor, suggestions = plain_scalar(reduction_factor), plain_scalar(suggestions)
        for field, value, least in (
            ("max_resource", max_resource, 1),
            ("min_resource", min_resource, 1),
            ("reduction_factor", reduction_factor, 2),
        ):
            check_whole(f"HyperbandStrategyConfig: {field}", value, least, required=True)
        if max_resource < min_resource:
            raise ConfigurationError(
                f"HyperbandStrategyConfig: max_resource is {max_resource}, less than min_resource, {min_resource}; "
                "give a max_resource that is not below min_resource"
            )
        self.max_resource = max_resource
        self.min_resource = min_resource
        self.reduction_factor = reduction_factor
        check_suggestions(suggestions)
        self.suggestions = suggestions

    def to_input_req(self) -> dict[str, int]:
        """The form that `describe()` gives it in."""
        return {"MinResource": self.min_resource, "MaxResource": self.max_resource}

    def __repr__(self) -> str:
        return (
            f"HyperbandStrategyConfig(max_resource={self.max_resource}, min_resource={self.min_resource}, "
            f"reduction_factor={self.reduction_factor}, suggestions={self.suggestions!r})"
        )


def check_suggestions(suggestions: object) -> None:
    """Refuses what is not a source of configurations.

    Raises:
        ConfigurationError: naming those that there are.
    """
    if suggestions not in SUGGESTIONS:
        raise ConfigurationError(f"HyperbandStrategyConfig: suggestions is {suggestions!r}; give 'model' or 'random'")


class StrategyConfig:
    """A strategy's own configuration.

    Args:
        hyperband_strategy_config: for the strategies "Hyperband" and "ASHA".

    Raises:
        ConfigurationError: it is none.
    """

    strategies: ClassVar[tuple[str, ...]] = ("Hyperband", "ASHA")
    """The strategies that it is for."""

    def __init__(self, hyperband_strategy_config: HyperbandStrategyConfig) -> None:
        if not isinstance(hyperband_strategy_config, HyperbandStrategyConfig):
            raise ConfigurationError(
                f"StrategyConfig: hyperband_strategy_config is {hyperband_strategy_config!r}; give "
                "HyperbandStrategyConfig(max_resource=..., min_resource=...)"
            )
        self.hyperband_strategy_config = hyperband_strategy_config

    def to_input_req(self) -> dict[str, Any]:
        """The form that `describe()` gives it in."""
        return {"HyperbandStrategyConfig": self.hyperband_strategy_config.to_input_req()}

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for the record."""
        return dict(vars(self.hyperband_strategy_config))

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> StrategyConfig:
        """As `to_json` recorded it.

        Raises:
            ConfigurationError: it did not.
        """
        try:
            return cls(HyperbandStrategyConfig(**state))
        except TypeError:
            raise ConfigurationError(
                f"the record of a StrategyConfig is {state!r}; give what to_json() of one returns"
            ) from None

    def __repr__(self) -> str:
        return f"StrategyConfig({self.hyperband_strategy_config!r})"


class HyperbandStrategy(Strategy):
    """Synchronous Hyperband over configurations that a model suggests, or random ones.

    Args:
        suggestions: see `HyperbandStrategyConfig`.
        **options: the others of a `HyperbandStrategyConfig`; without any, trials train as many units as the trainer's
            hyperparameters say, from 1, or with a model from a 27th of them.
    """

    name: ClassVar[str] = "Hyperband"
    rations: ClassVar[bool] = True

    def __init__(self, *, suggestions: str = "model", **options: Any) -> None:
        check_suggestions(suggestions)
        self._suggestions = suggestions
        self._options = options
        self._config = HyperbandStrategyConfig(**options) if options else None

    @property
    def learns(self) -> bool:
        """See `Strategy.learns`."""
        return self._suggestions == "model"

    @property
    def options(self) -> dict[str, Any]:
        """See `Strategy.options`."""
        return {**self._options, "suggestions": self._suggestions}

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`."""
        config = self._config or self._from_trainer(length(units, MAX_RESOURCE))
        brackets = lay_out_cutting if self._suggestions == "model" else lay_out
        return brackets(max_jobs, config.min_resource, config.max_resource, config.reduction_factor)

    def _from_trainer(self, units: int) -> HyperbandStrategyConfig:
        return HyperbandStrategyConfig(units, max(1, units // FIRST_RUNG) if self._suggestions == "model" else 1)

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`: trials that are added get brackets of their own, as a job of so many would have."""
        more = self.plan({}, max_jobs - plan.trials, plan.max_resource)
        return Plan(brackets=(*plan.brackets, *more.brackets), max_resource=plan.max_resource)

    def warnings(self, plan: Plan) -> list[str]:
        """See `Strategy.warnings`: it has no rung at which it could stop one of several trials."""
        if plan.trials == 1 or any(len(bracket.rungs) > 1 for bracket in plan.brackets):
            return []
        config = self._config or self._from_trainer(plan.max_resource)
        least, factor = config.min_resource, config.reduction_factor
        return [
            f"{self.name} stops no trial, all of them train {plan.max_resource} units: max_resource is less than "
            f"reduction_factor times min_resource, {factor} x {least}; give a max_resource of {factor * least} or "
            "more, a smaller min_resource or reduction_factor, or the strategy Random"
        ]

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        if self._suggestions == "random":
            return at_random(task)
        if task.parallel > LAG:
            return by_model(task, by_clock(task.plan, task.parallel, SLACK))
        lag = _lag(task.plan)
        return by_model(task, by_number(task.plan, lag), fewest=max(FEWEST, lag) if lag < LAG else None)


def _lag(plan: Plan) -> int:
    """Trials between a suggestion and the last that it reads, of up to `LAG` trials at once.

    Of a small job, a third of its first bracket: it has no trials to spare for suggestions that read little, and where
    more than that train at once, gangs may wait for them. Brackets that are added to a job leave it as it is.
    """
    return min(LAG, max(1, plan.brackets[0].sizes[0] // 3))
