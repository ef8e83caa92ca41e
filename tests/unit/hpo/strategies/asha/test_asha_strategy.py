"""The strategy ASHA: what it takes, what it says before the start, and what it reads."""

from __future__ import annotations

from hpo import ContinuousParameter, HyperbandStrategyConfig, StrategyConfig
from hpo.ranges import decode
from hpo.strategies import Task
from hpo.strategies.asha.asha_strategy import TIMING, AshaStrategy
from hpo.strategies.asha.open_history import OpenHistory
from hpo.strategies.asha.promotions import lay_out_asynchronous
from hpo.strategies.registry import (
    as_given,
    check_strategy,
    name_in_record,
    strategy_from_json,
    strategy_of,
)
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.searchers import ModelSearch, RandomSearch
from hpo.strategies.searchers.model_search import REFITS
from hpo.strategies.warm_start import WarmStartConfig
from hpo.suggestions import FEWEST_TRIALS
from tests.support.refusals import mentions, refuses
from tests.support.simulated import METRIC
from trainers.errors import ConfigurationError

CONFIG = StrategyConfig(HyperbandStrategyConfig(max_resource=27, min_resource=1, suggestions="random"))
RANGES = {"eta": ContinuousParameter(0.0, 1.0)}


def task(**options: object) -> Task:
    plan = lay_out_asynchronous(9, 1, 9)
    return Task(plan=plan, ranges=RANGES, metric=METRIC, mode="max", seed=1, **options)  # type: ignore[arg-type]


def test_it_takes_the_configuration_of_hyperband_and_comes_back_from_the_record() -> None:
    made = strategy_of("ASHA", CONFIG)
    assert isinstance(made, AshaStrategy)
    assert made.depends_on_timing
    assert name_in_record(made) == "ASHA"
    again = strategy_from_json("ASHA", made.options)
    assert again.options == made.options
    name, config = as_given("ASHA", made.options)
    assert name == "ASHA"
    assert config is not None
    assert config.to_json() == CONFIG.to_json()
    assert made.plan({}, 30, None) == lay_out_asynchronous(30, 1, 27)


def test_without_a_configuration_it_trains_as_long_as_the_trainer_says() -> None:
    plan = strategy_of("ASHA", None).plan({}, 30, 54)
    assert (plan.brackets[0].rungs, plan.trials, plan.eta) == ((2, 6, 18, 54), 30, 3)


def test_it_says_that_its_answer_depends_on_timing_and_where_it_stops_no_trial() -> None:
    made = strategy_of("ASHA", StrategyConfig(HyperbandStrategyConfig(max_resource=2, min_resource=1)))
    timing, inert = made.warnings(made.plan({}, 5, None))
    assert timing == TIMING
    mentions(inert, "ASHA", "2", "max_resource", "reduction_factor", "min_resource", "3", "Random")


def test_it_stops_trials_itself_and_learns_where_it_has_a_model() -> None:
    with refuses(ConfigurationError, field="early_stopping_type", value="Auto", remedy=("ASHA", "Off")):
        check_strategy("ASHA", None, "Auto")
    warm = WarmStartConfig("IdenticalDataAndAlgorithm", ["earlier"])
    check_strategy("ASHA", None, "Off", warm)
    with refuses(ConfigurationError, field="warm_start_config", value="ASHA", remedy=("suggestions", "model")):
        check_strategy("ASHA", CONFIG, "Off", warm)
    with refuses(ConfigurationError, field="strategy_config", value="Random", remedy=("Hyperband", "ASHA")):
        strategy_of("Random", CONFIG)


def test_its_searcher_is_random_or_a_model() -> None:
    assert isinstance(strategy_of("ASHA", CONFIG).prepare(task()).searcher, RandomSearch)
    assert isinstance(strategy_of("ASHA", None).prepare(task(parallel=4)).searcher, ModelSearch)


def test_a_suggestion_reads_what_had_come_when_it_was_begun() -> None:
    history = OpenHistory(lay_out_asynchronous(9, 1, 9))
    for number in range(3):
        history.begin({"eta": number / 10})
    history.reported(2, 1, 0.5)
    history.reported(2, 3, 0.75)
    assert history.ready(3)
    history.reported(0, 1, 0.25)
    seen, unseen = history.read(3)
    assert [(each.hyperparameters["eta"], each.resource, each.value) for each in seen] == [
        (0.2, 1, 0.5),
        (0.2, 3, 0.75),
    ]
    assert unseen == [{"eta": 0.0}, {"eta": 0.1}]


def asked(trials: int, seen: int) -> tuple[dict[str, object], dict[str, object]]:
    """What ASHA suggests behind so many trials, the first ones of them seen; and what random search would."""
    of = Task(plan=lay_out_asynchronous(trials + 3, 1, 9), ranges=RANGES, metric=METRIC, mode="max", seed=1)
    searcher = strategy_of("ASHA", None).prepare(of).searcher
    chance = strategy_of("ASHA", CONFIG).prepare(of).searcher
    for number in range(trials):
        tried = decode(RANGES, chance.suggest(f"t{number}"))
        searcher.begun(f"t{number}", tried)
        if number < seen:
            searcher.on_trial_result(f"t{number}", {RESOURCE: 1, METRIC: -abs(tried["eta"] - 0.5)})
    return searcher.suggest("next"), chance.suggest("next")


def test_its_model_is_asked_once_enough_has_come_not_once_enough_was_begun() -> None:
    suggested, drawn = asked(trials=12, seen=FEWEST_TRIALS - 1)
    assert suggested == drawn
    suggested, drawn = asked(trials=12, seen=FEWEST_TRIALS)
    assert suggested != drawn


def test_the_scales_that_several_suggestions_of_a_large_job_share_are_of_what_has_come() -> None:
    suggested, drawn = asked(trials=2 * REFITS, seen=20)
    assert suggested != drawn
