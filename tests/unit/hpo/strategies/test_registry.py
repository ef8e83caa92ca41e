"""What each strategy's name is turned into."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange, decode
from hpo.strategies.grid_strategy import GridStrategy
from hpo.strategies.hyperband import (
    HyperbandStrategy,
    HyperbandStrategyConfig,
    Plan,
    StrategyConfig,
    lay_out,
    lay_out_cutting,
)
from hpo.strategies.model_strategy import BayesianStrategy
from hpo.strategies.random_strategy import RandomStrategy
from hpo.strategies.registry import (
    STRATEGIES,
    as_given,
    as_recorded,
    check_strategy,
    name_in_record,
    strategy_code,
    strategy_from_json,
    strategy_of,
)
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from hpo.strategies.strategy import Learner, Prepared, Strategy, Task
from tests.support.own_code import Halves
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError

CONFIG = StrategyConfig(HyperbandStrategyConfig(max_resource=27, min_resource=3, reduction_factor=3))
RANGES = {"eta": ContinuousParameter(0.001, 1, "Logarithmic"), "booster": CategoricalParameter(["gbtree", "dart"])}
DISCRETE = {"max_depth": IntegerParameter(1, 10), "booster": CategoricalParameter(["gbtree", "dart"])}


def plan_for(strategy: str, config: StrategyConfig | None, max_jobs: int, units: int | None) -> Plan:
    return strategy_of(strategy, config).plan(RANGES, max_jobs, units)


def prepared(
    plan: Plan,
    strategy: str = "Hyperband",
    *,
    ranges: Mapping[str, ParameterRange] = RANGES,
    metric: str = "m",
    seed: int = 5,
) -> Prepared:
    return strategy_of(strategy, None).prepare(Task(plan=plan, ranges=ranges, metric=metric, mode="max", seed=seed))


def test_hyperband_is_laid_out_as_its_configuration_says() -> None:
    assert plan_for("Hyperband", CONFIG, 20, None) == lay_out_cutting(20, 3, 27, 3)
    faster = StrategyConfig(HyperbandStrategyConfig(64, 4, reduction_factor=4, suggestions="random"))
    assert plan_for("Hyperband", faster, 20, None) == lay_out(20, 4, 64, 4)


def test_its_configuration_goes_before_the_trainers_own_length() -> None:
    assert plan_for("Hyperband", CONFIG, 20, 500).max_resource == 27


def test_hyperband_without_a_configuration_takes_the_trainers_length() -> None:
    assert plan_for("Hyperband", None, 20, 81) == lay_out_cutting(20, 3, 81, 3)
    assert plan_for("Hyperband", None, 20, 10) == lay_out_cutting(20, 1, 10, 3)
    assert HyperbandStrategy(suggestions="random").plan(RANGES, 20, 81) == lay_out(20, 1, 81, 3)


@pytest.mark.parametrize("strategy", ["Bayesian", "Random"])
def test_others_run_every_trial_to_the_end(strategy: str) -> None:
    plan = plan_for(strategy, None, 7, 50)
    assert (plan.trials, plan.max_resource, plan.resource) == (7, 50, 350)


@pytest.mark.parametrize("strategy", ["Bayesian", "Hyperband", "Random"])
def test_a_job_without_a_length_says_where_to_give_one(strategy: str) -> None:
    with refuses(ConfigurationError, field="length", remedy="hyperparameters") as refused:
        plan_for(strategy, None, 5, None)
    assert ("max_resource in HyperbandStrategyConfig" in str(refused.value)) is (strategy == "Hyperband")
    assert "num_round" not in str(refused.value), "what trains is not known here"


def test_the_scheduler_has_the_plan_and_the_searcher_the_objective() -> None:
    plan = plan_for("Hyperband", CONFIG, 20, None)
    made = prepared(plan, metric="validation:auc")
    assert isinstance(made.scheduler, SynchronousHyperBandScheduler)
    assert made.plan == made.scheduler.plan == plan
    assert (made.searcher.metric, made.searcher.mode) == ("validation:auc", "max")


def draws(made: Prepared, count: int = 5) -> list[dict[str, Any] | None]:
    drawn = []
    for number in range(count):
        drawn.append(made.searcher.suggest(f"trial-{number}"))
        if isinstance(made.searcher, Learner):
            made.searcher.begun(f"trial-{number}", decode(RANGES, drawn[-1]))
    return drawn


def test_the_seed_decides_what_is_drawn() -> None:
    plan = plan_for("Hyperband", CONFIG, 20, None)
    first, again, other = (prepared(plan, seed=seed) for seed in (5, 5, 6))
    drawn = draws(first)
    assert drawn == draws(again)
    assert drawn != draws(other)
    assert len({str(configuration) for configuration in drawn}) == len(drawn)


def test_a_model_begins_with_what_random_search_would_try() -> None:
    plan = plan_for("Random", None, 20, 9)
    assert draws(prepared(plan, "Bayesian"), 3) == draws(prepared(plan, "Random"), 3)


def test_the_order_of_the_ranges_and_the_strategy_do_not() -> None:
    hyperband = prepared(plan_for("Hyperband", CONFIG, 20, None))
    turned = dict(reversed(RANGES.items()))
    random = prepared(plan_for("Random", None, 20, 9), "Random", ranges=turned)
    assert draws(hyperband) == draws(random)


def test_a_configuration_is_recorded_whole_and_described_as_sagemaker_does() -> None:
    faster = StrategyConfig(HyperbandStrategyConfig(64, 4, reduction_factor=4))
    assert StrategyConfig.from_json(faster.to_json()).to_json() == faster.to_json()
    assert faster.to_json() == {
        "max_resource": 64,
        "min_resource": 4,
        "reduction_factor": 4,
        "suggestions": "model",
    }
    assert faster.to_input_req() == {"HyperbandStrategyConfig": {"MinResource": 4, "MaxResource": 64}}
    assert repr(faster) == (
        "StrategyConfig(HyperbandStrategyConfig(max_resource=64, min_resource=4, reduction_factor=4, "
        "suggestions='model'))"
    )


def test_hyperband_of_an_older_record_drew_at_random() -> None:
    older = {"max_resource": 27, "min_resource": 3, "reduction_factor": 3}
    for options in (older, None):
        name, config = as_given("Hyperband", options)
        assert strategy_of(name, config).options == {**(options or {}), "suggestions": "random"}
    assert as_recorded("Hyperband", CONFIG.to_json()) == CONFIG.to_json()
    assert as_recorded("Random", None) == {}


@pytest.mark.parametrize("options", [CONFIG.to_json(), {"suggestions": "model"}, {"suggestions": "random"}])
def test_a_record_gives_the_strategy_that_was_given(options: dict[str, Any]) -> None:
    made = strategy_from_json("Hyperband", options)
    assert strategy_of(*as_given("Hyperband", made.options)).options == made.options == options


def test_what_does_not_fit_is_refused() -> None:
    whole = HyperbandStrategy(max_resource=9, min_resource=1)
    cases: list[tuple[tuple[str | Strategy, StrategyConfig | None, str], tuple[object, ...]]] = [
        (("Hyperbnad", None, "Off"), ("strategy", "'Hyperbnad'", "'Hyperband'")),
        (("Bayesian", CONFIG, "Off"), ("strategy_config", "'Bayesian'", "'Hyperband'", "'ASHA'")),
        (("Random", CONFIG, "Off"), ("strategy_config", "'Random'", "'Hyperband'")),
        ((whole, CONFIG, "Off"), ("strategy", "'Hyperband'", "strategy_config")),
        (("Hyperband", CONFIG, "Auto"), ("early_stopping_type", "'Auto'", "Hyperband", "'Off'")),
        (("Random", None, "off"), ("early_stopping_type", "'off'", "'Auto'")),
    ]
    refuses_each(((partial(check_strategy, *given), names) for given, names in cases), ConfigurationError)


@pytest.mark.parametrize(
    ("strategy", "config", "stopping"),
    [
        ("Hyperband", CONFIG, "Off"),
        ("Hyperband", None, "Off"),
        ("Random", None, "Off"),
        ("Random", None, "Auto"),
        ("Bayesian", None, "Auto"),
        ("Grid", None, "Auto"),
    ],
)
def test_what_fits_is_not(strategy: str, config: StrategyConfig | None, stopping: str) -> None:
    check_strategy(strategy, config, stopping)


@pytest.mark.parametrize(
    ("name", "strategy", "options"),
    [
        ("Random", RandomStrategy(), {}),
        ("Bayesian", BayesianStrategy(), {}),
        ("Grid", GridStrategy(), {}),
        ("Hyperband", HyperbandStrategy(), {"suggestions": "model"}),
        ("Hyperband", HyperbandStrategy(**CONFIG.to_json()), CONFIG.to_json()),
        ("tests.support.own_code:Halves", Halves(factor=3), {"factor": 3}),
    ],
)
def test_the_record_of_a_strategy_makes_it_again(name: str, strategy: Strategy, options: dict[str, Any]) -> None:
    assert (name_in_record(strategy), strategy.options) == (name, options)
    again = strategy_from_json(name, strategy.options or None)
    assert (type(again), again.options) == (type(strategy), options)
    assert again.plan(DISCRETE, 20, 27) == strategy.plan(DISCRETE, 20, 27)
    assert strategy_code(name, options) == ({} if name in STRATEGIES else {"strategy": name})


def test_a_subclass_of_a_strategy_is_the_user_s_own() -> None:
    kind = type("Mine", (HyperbandStrategy,), {"__module__": "shop.search"})
    assert name_in_record(kind()) == "shop.search:Mine"


def test_what_no_record_of_a_strategy_says_is_refused() -> None:
    own, strategy = "tests.support.own_code", "hpo.strategies.Strategy"
    inner = "shop.search:f.<locals>.Mine"
    cases: list[tuple[str, dict[str, Any] | None, tuple[object, ...]]] = [
        (f"{own}:Halves", {"factr": 3}, ("strategy", f"{own}:Halves", {"factr": 3}, "'factr'")),
        (f"{own}:NoTrainer", None, ("strategy", f"{own}:NoTrainer", strategy)),
        (f"{own}:train", None, ("strategy", f"{own}:train", strategy)),
        (f"{own}:Nowhere", None, ("strategy", f"{own}:Nowhere", "module")),
        (inner, None, ("strategy", inner, "import", "module")),
        ("__main__:Mine", None, ("strategy", "__main__:Mine", "notebook", "module")),
        ("Random", {"factor": 3}, ("strategy", "'Random'", {"factor": 3})),
        ("Hyperband", {"suggestions": "modle"}, ("suggestions", "'modle'", "'model'", "'random'")),
    ]
    refuses_each(
        ((partial(strategy_from_json, name, options), names) for name, options, names in cases), ConfigurationError
    )
