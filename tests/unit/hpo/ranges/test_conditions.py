"""Conditions: what there is follows from the values of others, and what can never be met is refused."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    ParameterRange,
    check_conditions,
    checked_point,
    corners,
    count_combinations,
    decode,
    encode,
    parents_first,
    present,
    range_from_json,
    search_space,
)
from tests.support.hpo.ranges.conditions import RANGES
from tests.support.refusals import refuses, refuses_each
from trainers import ConfigurationError


def there_of(values: dict[str, Any]) -> set[str]:
    """The same, written out."""
    names = {"optimizer", "layers"}
    names |= {"momentum"} if values["optimizer"] == "sgd" else set()
    names |= {"units"} if values["layers"] == 3 else set()
    if values["optimizer"] == "sgd" and values["layers"] > 1:
        names |= {"nesterov", *(["decay"] if values["nesterov"] else [])}
    return names


@given(st.integers(0, 2**32 - 1))
def test_a_suggestion_has_what_its_own_values_call_for(seed: int) -> None:
    stream = np.random.default_rng(seed)
    suggested = {name: domain.sample(random_state=stream) for name, domain in search_space(RANGES).items()}
    values = decode(RANGES, suggested)
    assert values.keys() == there_of(values)
    assert [*values] == [name for name in RANGES if name in values]
    assert all(RANGES[name].is_valid(value) for name, value in values.items())
    # A searcher that knows of conditions may leave out the rest, and no more.
    assert decode(RANGES, {name: suggested[name] for name in values}) == values
    with refuses(ConfigurationError, field="layers", remedy="search_space"):
        decode(RANGES, {name: suggested[name] for name in values if name != "layers"})
    again = decode(RANGES, encode(RANGES, values))
    assert {**again, "decay": 0} == {**values, "decay": 0}
    assert again.get("decay", 0) == pytest.approx(values.get("decay", 0), rel=1e-9)


def test_given_values_decide_what_there_is() -> None:
    suggested = encode(RANGES, {"optimizer": "adam", "layers": 1})
    given = {"optimizer": "sgd", "layers": 3}
    values = decode(RANGES, suggested, given)
    assert values.keys() == there_of(values) >= {"optimizer", "layers", "momentum", "nesterov", "units"}
    assert decode(
        RANGES, encode(RANGES, {"optimizer": "sgd", "momentum": 0.9, "layers": 1}), {"optimizer": "none"}
    ) == {
        "optimizer": "none",
        "layers": 1,
    }


def test_values_of_a_condition_keep_their_types() -> None:
    ranges = {
        "flag": CategoricalParameter([1, True, "1"]),
        "depth": IntegerParameter(1, 2, when={"flag": [True]}),
    }
    assert [present(ranges, {"flag": flag}) for flag in (1, True, "1", np.bool_(True))] == [
        ["flag"],
        ["flag", "depth"],
        ["flag"],
        ["flag", "depth"],
    ]


def test_a_step_is_met_however_it_was_computed() -> None:
    ranges = {
        "dropout": ContinuousParameter(0, 0.5, step=0.1),
        "depth": IntegerParameter(1, 2, when={"dropout": [0.1 + 0.2]}),
    }
    check_conditions(ranges)
    assert present(ranges, {"dropout": 0.3}) == ["dropout", "depth"]
    assert present(ranges, {"dropout": 0.2}) == ["dropout"]


def test_a_range_says_its_condition_everywhere() -> None:
    for made in RANGES.values():
        assert range_from_json(json.loads(json.dumps(made.to_json()))) == made == pickle.loads(pickle.dumps(made))
        assert eval(repr(made)) == made
        assert made.as_tuning_range("x").get("When", {}).keys() == made.when.keys()
        assert ("when" in made.to_json()) == bool(made.when)
    assert RANGES["units"].as_tuning_range("units")["When"] == {"layers": ["3"]}
    assert IntegerParameter(1, 2) != IntegerParameter(1, 2, when={"a": 1})
    assert CategoricalParameter([1]) != CategoricalParameter([1], when={"a": 1})
    assert IntegerParameter(1, 2, when={"a": np.array([1])[0]}).when == {"a": [1]}
    assert len({IntegerParameter(1, 2, when={"a": 1}), IntegerParameter(1, 2, when={"a": 1})}) == 1


BOTH = CategoricalParameter(["x", "y"])


def test_conditions_that_cannot_be_are_refused() -> None:
    def on(**when: Any) -> IntegerParameter:
        return IntegerParameter(1, 2, when=when)

    refused: list[tuple[dict[str, ParameterRange], tuple[object, ...]]] = [
        ({"a": BOTH, "b": on(ab=["x"])}, ("hyperparameter_ranges['b']", "ab", "'a'")),
        (
            {"a": BOTH, "b": on(a=["xx"])},
            ("hyperparameter_ranges['b']", "'a'", "xx", "CategoricalParameter(['x', 'y'])"),
        ),
        (
            {"a": IntegerParameter(1, 3), "b": on(a=[4])},
            ("hyperparameter_ranges['b']", "'a'", 4, "IntegerParameter(1, 3)"),
        ),
        (
            {"a": IntegerParameter(1, 9, step=2), "b": on(a=[4])},
            ("hyperparameter_ranges['b']", "'a'", 4, "IntegerParameter(1, 9, step=2)"),
        ),
        (
            {"a": ContinuousParameter(0, 1), "b": on(a=[0.5])},
            ("hyperparameter_ranges['b']", "'a'", 0.5, "categorical", "integer", "step"),
        ),
        ({"a": on(a=[1])}, ("hyperparameter_ranges['a']",)),
        (
            {"a": on(c=[1]), "b": on(a=[1]), "c": on(b=[1])},
            ("hyperparameter_ranges['a']", "'c'", "'b'"),
        ),
        (
            {"a": BOTH, "b": on(a=["x"]), "c": on(a=["y"], b=[1])},
            ("hyperparameter_ranges['c']", {"a": ["y"], "b": [1]}),
        ),
    ]
    refuses_each(
        [(partial(call, ranges), names) for ranges, names in refused for call in (check_conditions, search_space)],
        ConfigurationError,
    )


def test_what_is_no_condition_is_refused_by_each_kind() -> None:
    kinds = [
        (ContinuousParameter, 0, 1),
        (IntegerParameter, 0, 1),
        (NormalParameter, 0, 1),
        (CategoricalParameter, [1]),
    ]
    wrong: list[tuple[Any, tuple[object, ...]]] = [
        ("sgd", ("when", "'sgd'", "optimizer")),
        ({"": [1]}, ("when", {"": [1]}, "optimizer")),
        ({"a": []}, ("when['a']", [])),
        ({"a": [float("nan")]}, ("when['a']", "nan", "finite")),
        ({"a": [[1]]}, ("when['a']", [1], "None", "boolean", "number", "string")),
    ]
    refuses_each(
        [
            (partial(kind, *arguments, when=when), (kind.__name__, *names))
            for kind, *arguments in kinds
            for when, names in wrong
        ],
        ConfigurationError,
    )


def test_a_large_grid_is_not_laid_out_to_be_counted() -> None:
    large = {f"h{place}": IntegerParameter(1, 1000) for place in range(9)}
    tied = {"a": BOTH, "b": IntegerParameter(1, 10**9, when={"a": ["x"]}), **large}
    assert count_combinations(tied, 10**5) > 10**5
    assert count_combinations({**tied, "c": IntegerParameter(1, 2, when={"b": [7]})}, 10**5) > 10**5


def test_each_comes_behind_what_it_depends_on() -> None:
    order = parents_first(RANGES)
    assert sorted(order) == sorted(RANGES)
    assert all(order.index(other) < order.index(name) for name in RANGES for other in RANGES[name].when)
    assert parents_first({name: IntegerParameter(1, 2) for name in "cab"}) == ["a", "b", "c"]


def test_a_trainer_is_asked_about_every_branch() -> None:
    seen = list(corners(RANGES))
    assert set().union(*seen) == RANGES.keys()
    assert all(each.keys() == there_of(each) for each in seen)


def test_a_point_that_contradicts_itself_is_refused() -> None:
    refused: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"optimizer": "adam", "momentum": 0.9}, ("momentum", "optimizer", "sgd")),
        ({"momentum": 0.9}, ("momentum", "optimizer", "sgd")),
        ({"optimizer": "sgd", "layers": 1, "nesterov": True}, ("nesterov", "layers", 2, 3)),
        ({"units": 33, "layers": 3}, ("units", 33, "IntegerParameter")),
    ]
    refuses_each(
        [(partial(checked_point, RANGES, point, "a_point"), ("a_point", *names)) for point, names in refused],
        ConfigurationError,
    )


def test_a_point_may_have_a_branch_or_leave_it_to_the_searcher() -> None:
    for point in ({"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.9}, {"layers": 3, "units": 64}):
        assert checked_point(RANGES, point, "point") == point
    assert checked_point({"x": ContinuousParameter(0, 1, step=0.1)}, {"x": 0.1 + 0.2}, "point") == {"x": 0.3}
