"""Units from which hyperparameters take effect."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from ray import tune
from ray.tune.schedulers import FIFOScheduler, PopulationBasedTraining

from hpo.forks.effects import Effects, check_effects, check_keeps_trials
from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from tests.support.own_code import Churn, Line, train as own_function
from tests.support.refusals import refuses, refuses_each
from trainers import ParameterServerTrainer, SeveralTrainers, TorchTrainer, Trainer, XGBoostTrainer
from trainers.errors import ConfigurationError
from trainers.tunable import late_obstacle

RANGES: dict[str, ParameterRange] = {
    "decay_at": IntegerParameter(10, 30, step=10),
    "after": ContinuousParameter(0.1, 0.5),
    "any_unit": IntegerParameter(1, 1000),
}
STATIC = {"lr": 0.1, "warm": 3, "epochs": 40}
SEVERAL = SeveralTrainers({"trees": XGBoostTrainer(), "net": TorchTrainer(own_function)})


WHOLE = ("IntegerParameter", "CategoricalParameter")
"""Ranges whose values can be units."""


def no_obstacle(name: str) -> str:
    return ""


def leaves_out(message: str) -> str:
    """What a message says to leave out: all of `takes_effect`, which it names beside its entry, or the one entry."""
    return "all" if re.search(r"takes_effect\b(?!\[)", message) else "one"


def test_a_trial_is_cut_where_others_may_part_until_all_of_it_is_in_effect() -> None:
    effects = Effects.of({"decay_at": "decay_at", "after": "decay_at", "lr": 5}, RANGES, STATIC)
    late = {"decay_at": 20, "after": 0.1, "lr": 0.1}
    cuts, at = [], 0
    while (split := effects.next_split(at, late)) is not None:
        cuts.append(at := split)
    assert cuts == [5, 10, 20] == [*range(5, 6), 10, effects.last(late)]
    assert effects.before(20, late, late) == {"lr": 0.1}
    assert effects.before(21, late, late) == late
    assert effects.last({"lr": 0.1}) == 5


def test_where_no_trial_has_another_value_only_its_own_cuts_it() -> None:
    effects = Effects.of({"after": "any_unit"}, RANGES, STATIC)
    config = {"any_unit": 700, "after": 0.2}
    assert (effects.next_split(0, config), effects.next_split(700, config)) == (700, None)
    assert effects.before(1, config, config) == {"any_unit": 700}


def test_one_whose_unit_is_not_there_takes_effect_from_the_beginning() -> None:
    effects = Effects.of({"after": "decay_at", "decay_at": "decay_at"}, RANGES, STATIC)
    assert effects.before(1, {"after": 0.2}, {"after": 0.2}) == {"after": 0.2}
    assert effects.next_split(0, {"after": 0.2}) is None


def test_what_is_no_declaration_is_refused() -> None:
    refused: list[tuple[Any, tuple[object, ...]]] = [
        ({}, ("takes_effect", {}, "dict")),
        ("decay_at", ("takes_effect", "'decay_at'", "dict")),
        ({"decay": 3}, ("takes_effect", "decay", "decay_at")),
        ({"after": "decayed_at"}, ("takes_effect['after']", "decayed_at", "decay_at")),
        ({"after": 0}, ("takes_effect['after']", 0, 1)),
        ({"after": True}, ("takes_effect['after']", True, 1)),
        ({"decay_at": "after"}, ("takes_effect['decay_at']", "'after'", RANGES["after"], *WHOLE)),
        ({"after": "lr"}, ("takes_effect['after']", "'lr'", 0.1, *WHOLE)),
        ({"epochs": 3}, ("takes_effect", "epochs", "checkpoint")),
        ({"any_unit": "any_unit"}, ("takes_effect['any_unit']", "1000 units", 50)),
    ]
    refuses_each(
        [(partial(check_effects, begins, RANGES, STATIC, ["epochs"], no_obstacle), names) for begins, names in refused],
        ConfigurationError,
    )


@pytest.mark.parametrize("begins", [None, {"after": "decay_at"}, {"after": "warm", "lr": 7}, {"after": "any_unit"}])
def test_what_is_one_is_taken(begins: Any) -> None:
    check_effects(begins, RANGES, STATIC, ["epochs"], no_obstacle)


def test_units_may_be_categories_of_whole_numbers_alone() -> None:
    for values, right in (([0, 10, 20], True), ([10, 20.5], False), (["10", "20"], False)):
        ranges: dict[str, ParameterRange] = {"decay_at": CategoricalParameter(values)}
        if right:
            check_effects({"decay_at": "decay_at"}, ranges, {}, [], no_obstacle)
        else:
            with refuses(ConfigurationError, field="takes_effect['decay_at']", value=ranges["decay_at"], remedy=WHOLE):
                check_effects({"decay_at": "decay_at"}, ranges, {}, [], no_obstacle)


def test_a_range_of_numbers_that_are_no_units_is_refused_whatever_the_trainers_own_value_is() -> None:
    with refuses(ConfigurationError, field=("decay_at", "'after'"), value=RANGES["after"], remedy=WHOLE):
        check_effects({"decay_at": "after"}, RANGES, {**STATIC, "after": 40}, [], no_obstacle)
    with refuses(ConfigurationError, field=("after", "'early'"), value=IntegerParameter(-1, 3), remedy=WHOLE):
        check_effects({"after": "early"}, {**RANGES, "early": IntegerParameter(-1, 3)}, STATIC, [], no_obstacle)


CONDITIONAL: dict[str, ParameterRange] = {
    "schedule": CategoricalParameter(["constant", "step"]),
    "decay_at": IntegerParameter(10, 30, step=10, when={"schedule": ["step"]}),
}


@pytest.mark.parametrize("own", ["never", None, 2.5, -1])
def test_where_a_ranges_condition_is_not_met_the_trainers_own_value_has_to_be_a_unit(own: Any) -> None:
    field = ("takes_effect['decay_at']", repr(CONDITIONAL["decay_at"]))
    with refuses(ConfigurationError, field=field, value=own, remedy=WHOLE):
        check_effects({"decay_at": "decay_at"}, CONDITIONAL, {"decay_at": own}, [], no_obstacle)


def test_trials_are_cut_where_those_part_whose_condition_is_not_met() -> None:
    begins = {"schedule": "decay_at", "decay_at": "decay_at"}
    for own, units in (({}, (10, 20, 30)), ({"decay_at": 0}, (10, 20, 30)), ({"decay_at": 15}, (10, 15, 20, 30))):
        check_effects(begins, CONDITIONAL, own, [], no_obstacle)
        assert Effects.of(begins, CONDITIONAL, own).units == units


@pytest.mark.parametrize(
    ("trainer", "begins", "names", "left_out"),
    [
        (XGBoostTrainer(), {"eta": 3}, ("takes_effect['eta']", 3, "XGBoost", "round"), "all"),
        (XGBoostTrainer(), {"eta": 3, "max_depth": "num_workers"}, ("takes_effect['eta']", 3, "round"), "all"),
        (Churn(), {"eta": 3}, ("takes_effect['eta']", 3, "XGBoost", "round"), "all"),
        (Line(), {"eta": 3}, ("takes_effect['eta']", 3, "Line", "late_obstacle(name)"), "all"),
        (
            TorchTrainer(own_function),
            {"eta": 3, "per_worker_batch_size": 3},
            ("takes_effect['per_worker_batch_size']", 3, "TorchTrainer"),
            "one",
        ),
        (
            TorchTrainer(own_function),
            {"warmup_epochs": 3},
            ("takes_effect['warmup_epochs']", 3, "TorchTrainer", "epoch"),
            "all",
        ),
        (
            ParameterServerTrainer(own_function),
            {"mode": 3},
            ("takes_effect['mode']", 3, "ParameterServerTrainer"),
            "all",
        ),
        (TorchTrainer(own_function), {"mode": 3}, (), "none"),
        (SEVERAL, {"net.lr": 3}, (), "none"),
        (SEVERAL, {"net.lr": 3, "trees.eta": 3}, ("takes_effect['trees.eta']", 3, "XGBoost"), "one"),
        (SEVERAL, {"trees.eta": 3, "estimator": 3}, ("takes_effect['trees.eta']", "XGBoost"), "all"),
    ],
)
def test_what_a_trainer_reads_from_the_first_unit_on_takes_effect_there(
    trainer: Trainer, begins: dict[str, Any], names: tuple[Any, ...], left_out: str
) -> None:
    ranges: dict[str, ParameterRange] = {name: ContinuousParameter(0.1, 0.5) for name in begins}
    obstacle, static = partial(late_obstacle, trainer), {"num_workers": 2}
    if left_out == "none":
        check_effects(begins, ranges, static, trainer.fixed_names, obstacle)
        return
    with refuses(ConfigurationError, field=names) as raised:
        check_effects(begins, ranges, static, trainer.fixed_names, obstacle)
    assert leaves_out(str(raised.value)) == left_out


def test_a_trainer_of_a_users_own_says_what_may_take_effect_late() -> None:
    class Decaying(Line):
        def late_obstacle(self, name: str) -> str:
            return "" if name == "decay_at" else "all else is read at once"

    obstacle = partial(late_obstacle, Decaying())
    check_effects({"decay_at": "decay_at"}, RANGES, {}, [], obstacle)
    with refuses(ConfigurationError, field="takes_effect['after']", value=3) as raised:
        check_effects({"after": 3, "decay_at": 3}, RANGES, {}, [], obstacle)
    assert "all else is read at once" in str(raised.value)  # As its method says.
    assert leaves_out(str(raised.value)) == "one"


def test_a_population_is_refused_beside_it() -> None:
    scheduler = PopulationBasedTraining(hyperparam_mutations={"eta": tune.uniform(0, 1)})
    with refuses(
        ConfigurationError, field="takes_effect", value={"after": "decay_at"}, remedy="PopulationBasedTraining"
    ):
        check_keeps_trials({"after": "decay_at"}, scheduler)
    check_keeps_trials(None, scheduler)
    check_keeps_trials({"after": "decay_at"}, FIFOScheduler())
