"""Units from which hyperparameters take effect."""

from __future__ import annotations

from typing import Any

import pytest
from ray import tune
from ray.tune.schedulers import FIFOScheduler, PopulationBasedTraining

from hpo.forks.effects import Effects, check_effects, check_keeps_trials
from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from trainers.errors import ConfigurationError

RANGES: dict[str, ParameterRange] = {
    "decay_at": IntegerParameter(10, 30, step=10),
    "after": ContinuousParameter(0.1, 0.5),
    "any_unit": IntegerParameter(1, 1000),
}
STATIC = {"lr": 0.1, "warm": 3, "epochs": 40}


def test_a_trial_is_cut_where_others_may_part_until_all_of_it_is_in_effect() -> None:
    effects = Effects.of({"decay_at": "decay_at", "after": "decay_at", "lr": 5}, RANGES)
    late = {"decay_at": 20, "after": 0.1, "lr": 0.1}
    cuts, at = [], 0
    while (split := effects.next_split(at, late)) is not None:
        cuts.append(at := split)
    assert cuts == [5, 10, 20] == [*range(5, 6), 10, effects.last(late)]
    assert effects.before(20, late, late) == {"lr": 0.1}
    assert effects.before(21, late, late) == late
    assert effects.last({"lr": 0.1}) == 5


def test_where_no_trial_has_another_value_only_its_own_cuts_it() -> None:
    effects = Effects.of({"after": "any_unit"}, RANGES)
    config = {"any_unit": 700, "after": 0.2}
    assert (effects.next_split(0, config), effects.next_split(700, config)) == (700, None)
    assert effects.before(1, config, config) == {"any_unit": 700}


def test_one_whose_unit_is_not_there_takes_effect_from_the_beginning() -> None:
    effects = Effects.of({"after": "decay_at", "decay_at": "decay_at"}, RANGES)
    assert effects.before(1, {"after": 0.2}, {"after": 0.2}) == {"after": 0.2}
    assert effects.next_split(0, {"after": 0.2}) is None


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ({}, "takes_effect is {}; give a dict of hyperparameters"),
        ("decay_at", "takes_effect is 'decay_at'; give a dict"),
        ({"decay": 3}, "takes_effect has 'decay', which is no hyperparameter of the job; give one of decay_at"),
        ({"after": "decayed_at"}, "'decayed_at', which is no hyperparameter of the job; give a number of units"),
        ({"after": 0}, r"takes_effect\['after'\] is 0; give a whole number, 1 or more"),
        ({"after": True}, r"takes_effect\['after'\] is True"),
        ({"decay_at": "after"}, "and 'after' is ContinuousParameter.*; give one whose values are whole numbers"),
        ({"after": "lr"}, "and 'lr' is 0.1; give one whose values are whole numbers of units"),
        ({"epochs": 3}, "takes_effect has 'epochs', and no trial can go on from a checkpoint with another value"),
        ({"any_unit": "any_unit"}, "trials may part at 1000 units of .*give at most 50"),
    ],
)
def test_what_is_no_declaration_is_refused(begins: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check_effects(begins, RANGES, STATIC, ["epochs"])


@pytest.mark.parametrize("begins", [None, {"after": "decay_at"}, {"after": "warm", "lr": 7}, {"after": "any_unit"}])
def test_what_is_one_is_taken(begins: Any) -> None:
    check_effects(begins, RANGES, STATIC, ["epochs"])


def test_units_may_be_categories_of_whole_numbers_alone() -> None:
    for values, right in (([0, 10, 20], True), ([10, 20.5], False), (["10", "20"], False)):
        ranges: dict[str, ParameterRange] = {"decay_at": CategoricalParameter(values)}
        if right:
            check_effects({"decay_at": "decay_at"}, ranges, {}, [])
        else:
            with pytest.raises(ConfigurationError, match="give one whose values are whole numbers"):
                check_effects({"decay_at": "decay_at"}, ranges, {}, [])


def test_a_population_is_refused_beside_it() -> None:
    scheduler = PopulationBasedTraining(hyperparam_mutations={"eta": tune.uniform(0, 1)})
    with pytest.raises(ConfigurationError, match="PopulationBasedTraining changes hyperparameters on the way"):
        check_keeps_trials({"after": "decay_at"}, scheduler)
    check_keeps_trials(None, scheduler)
    check_keeps_trials({"after": "decay_at"}, FIFOScheduler())
