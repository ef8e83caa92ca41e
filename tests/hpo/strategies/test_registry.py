"""What each strategy's name is turned into."""

from __future__ import annotations

from typing import Any

import pytest

from hpo.ranges import CategoricalParameter, ContinuousParameter
from hpo.strategies.hyperband import lay_out
from hpo.strategies.registry import (
    HyperbandStrategyConfig,
    Strategy,
    StrategyConfig,
    check_strategy,
    make_strategy,
    plan_for,
)
from hpo.strategies.scheduler import SynchronousHyperBandScheduler
from trainers.errors import ConfigurationError

CONFIG = StrategyConfig(HyperbandStrategyConfig(max_resource=27, min_resource=3, reduction_factor=3))
RANGES = {"eta": ContinuousParameter(0.001, 1, "Logarithmic"), "booster": CategoricalParameter(["gbtree", "dart"])}


def test_hyperband_is_laid_out_as_its_configuration_says() -> None:
    assert plan_for("Hyperband", CONFIG, 20, None) == lay_out(20, 3, 27, 3)
    faster = StrategyConfig(HyperbandStrategyConfig(64, 4, reduction_factor=4))
    assert plan_for("Hyperband", faster, 20, None) == lay_out(20, 4, 64, 4)


def test_its_configuration_goes_before_the_trainers_own_length() -> None:
    assert plan_for("Hyperband", CONFIG, 20, 500).max_resource == 27


def test_hyperband_without_a_configuration_takes_the_trainers_length() -> None:
    assert plan_for("Hyperband", None, 20, 81) == lay_out(20, 1, 81, 3)


def test_random_runs_every_trial_to_the_end() -> None:
    plan = plan_for("Random", None, 7, 50)
    assert (plan.trials, plan.max_resource, plan.resource) == (7, 50, 350)


@pytest.mark.parametrize("strategy", ["Hyperband", "Random"])
def test_a_job_without_a_length_says_where_to_give_one(strategy: str) -> None:
    with pytest.raises(ConfigurationError, match=r"max_resource in HyperbandStrategyConfig.*num_round"):
        plan_for(strategy, None, 5, None)


def test_the_scheduler_has_the_plan_and_the_searcher_the_objective() -> None:
    plan = plan_for("Hyperband", CONFIG, 20, None)
    made = make_strategy(plan, RANGES, metric="validation:auc", mode="max", seed=1)
    assert isinstance(made.scheduler, SynchronousHyperBandScheduler)
    assert made.plan == made.scheduler.plan == plan
    assert (made.searcher.metric, made.searcher.mode) == ("validation:auc", "max")


def draws(made: Strategy, count: int = 10) -> list[dict[str, Any] | None]:
    return [made.searcher.suggest(f"trial-{number}") for number in range(count)]


def test_the_seed_decides_what_is_drawn() -> None:
    plan = plan_for("Hyperband", CONFIG, 20, None)
    first, again, other = (make_strategy(plan, RANGES, metric="m", mode="max", seed=seed) for seed in (5, 5, 6))
    drawn = draws(first)
    assert drawn == draws(again)
    assert drawn != draws(other)
    assert len({str(configuration) for configuration in drawn}) == len(drawn)


def test_the_order_of_the_ranges_and_the_strategy_do_not() -> None:
    hyperband = make_strategy(plan_for("Hyperband", CONFIG, 20, None), RANGES, metric="m", mode="max", seed=5)
    turned = dict(reversed(RANGES.items()))
    random = make_strategy(plan_for("Random", None, 20, 9), turned, metric="m", mode="max", seed=5)
    assert draws(hyperband) == draws(random)


def test_a_configuration_is_recorded_whole_and_described_as_sagemaker_does() -> None:
    faster = StrategyConfig(HyperbandStrategyConfig(64, 4, reduction_factor=4))
    assert StrategyConfig.from_json(faster.to_json()).to_json() == faster.to_json()
    assert faster.to_json() == {"max_resource": 64, "min_resource": 4, "reduction_factor": 4}
    assert faster.to_input_req() == {"HyperbandStrategyConfig": {"MinResource": 4, "MaxResource": 64}}
    assert repr(faster) == (
        "StrategyConfig(HyperbandStrategyConfig(max_resource=64, min_resource=4, reduction_factor=4))"
    )


@pytest.mark.parametrize(
    ("strategy", "config", "stopping", "message"),
    [
        ("Hyperbnad", None, "Off", "'Hyperbnad' is unknown.*did you mean 'Hyperband'"),
        ("Bayesian", None, "Off", "'Bayesian' is not there yet; give one of Hyperband, Random"),
        ("Random", CONFIG, "Off", "strategy_config is for the strategy 'Hyperband'"),
        ("Hyperband", CONFIG, "Auto", "Hyperband stops trials itself; give 'Off'"),
        ("Random", None, "Auto", "not there yet; give 'Off'"),
        ("Random", None, "off", "early_stopping_type is 'off'"),
    ],
)
def test_what_does_not_fit_is_refused(
    strategy: str, config: StrategyConfig | None, stopping: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_strategy(strategy, config, stopping)


@pytest.mark.parametrize(("strategy", "config"), [("Hyperband", CONFIG), ("Hyperband", None), ("Random", None)])
def test_what_fits_is_not(strategy: str, config: StrategyConfig | None) -> None:
    check_strategy(strategy, config, "Off")
