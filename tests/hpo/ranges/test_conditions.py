"""Conditions: what there is follows from the values of others, and what can never be met is refused."""

from __future__ import annotations

import json
import pickle
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
    combinations,
    corners,
    count_combinations,
    decode,
    encode,
    parents_first,
    present,
    range_from_json,
    search_space,
)
from trainers import ConfigurationError

RANGES: dict[str, ParameterRange] = {
    "momentum": ContinuousParameter(0.5, 0.99, when={"optimizer": "sgd"}),
    "optimizer": CategoricalParameter(["sgd", "adam", "none"]),
    "nesterov": CategoricalParameter([True, False], when={"optimizer": ["sgd"], "layers": [2, 3]}),
    "decay": NormalParameter(-7, 1, "Logarithmic", when={"nesterov": [True]}),
    "layers": IntegerParameter(1, 3),
    "units": IntegerParameter(32, 96, step=32, when={"layers": [3]}),
}


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
    with pytest.raises(ConfigurationError, match="the searcher suggested"):
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


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"a": BOTH, "b": IntegerParameter(1, 2, when={"ab": ["x"]})}, "'b'.*'ab' is not tuned; .*did you mean 'a'"),
        ({"a": BOTH, "b": IntegerParameter(1, 2, when={"a": ["xx"]})}, "'a' is never 'xx'; give values of Categorical"),
        ({"a": IntegerParameter(1, 3), "b": IntegerParameter(1, 2, when={"a": [4]})}, "'a' is never 4; give values of"),
        ({"a": IntegerParameter(1, 9, step=2), "b": IntegerParameter(1, 2, when={"a": [4]})}, "'a' is never 4"),
        ({"a": ContinuousParameter(0, 1), "b": IntegerParameter(1, 2, when={"a": [0.5]})}, "'a' may have any number"),
        ({"a": IntegerParameter(1, 2, when={"a": [1]})}, r"'a'\] depends on itself: 'a' on 'a'; leave"),
        (
            {
                "a": IntegerParameter(1, 2, when={"c": [1]}),
                "b": IntegerParameter(1, 2, when={"a": [1]}),
                "c": IntegerParameter(1, 2, when={"b": [1]}),
            },
            "depends on itself: 'a' on 'c' on 'b' on 'a'; leave one of these conditions out",
        ),
        (
            {
                "a": BOTH,
                "b": IntegerParameter(1, 2, when={"a": ["x"]}),
                "c": IntegerParameter(1, 2, when={"a": ["y"], "b": [1]}),
            },
            r"'c'\].* never met, since another of its conditions wants another 'a'; give values that go together",
        ),
    ],
)
def test_conditions_that_cannot_be_are_refused(ranges: dict[str, ParameterRange], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_conditions(ranges)
    with pytest.raises(ConfigurationError, match=message):
        search_space(ranges)


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("sgd", "when is 'sgd'; give names of hyperparameters and their values, such as {'optimizer': "),
        ({"": [1]}, "give names of hyperparameters"),
        ({"a": []}, r"when\['a'\] is \[\]; give at least one value"),
        ({"a": [float("nan")]}, r"when\['a'\] is nan; give a finite number"),
        ({"a": [[1]]}, r"when\['a'\] is \[1\]; give None, a boolean, a number or a string"),
    ],
)
def test_what_is_no_condition_is_refused_by_each_kind(when: Any, message: str) -> None:
    for make in (
        lambda: ContinuousParameter(0, 1, when=when),
        lambda: IntegerParameter(0, 1, when=when),
        lambda: NormalParameter(0, 1, when=when),
        lambda: CategoricalParameter([1], when=when),
    ):
        with pytest.raises(ConfigurationError, match=message):
            make()


GRID = {name: bounds for name, bounds in RANGES.items() if bounds.size is not None}


def test_a_grid_has_no_combination_twice_and_none_is_missing() -> None:
    found = list(combinations(GRID))
    drawn = [decode(GRID, {name: d.sample() for name, d in search_space(GRID).items()}) for _ in range(2000)]
    assert {repr(sorted(each.items())) for each in found} == {repr(sorted(each.items())) for each in drawn}
    assert len({repr(sorted(each.items())) for each in found}) == len(found) == count_combinations(GRID, 1000)


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


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (
            {"optimizer": "adam", "momentum": 0.9},
            "'momentum', which there is only if 'optimizer' is 'sgd'; leave it out",
        ),
        ({"momentum": 0.9}, "which there is only if 'optimizer' is 'sgd'; give 'optimizer', too"),
        ({"optimizer": "sgd", "layers": 1, "nesterov": True}, "only if 'layers' is 2 or 3; leave it out"),
        ({"units": 33, "layers": 3}, "'units' 33; give a value of IntegerParameter"),
    ],
)
def test_a_point_that_contradicts_itself_is_refused(point: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        checked_point(RANGES, point, "point")


def test_a_point_may_have_a_branch_or_leave_it_to_the_searcher() -> None:
    for point in ({"optimizer": "sgd"}, {"optimizer": "sgd", "momentum": 0.9}, {"layers": 3, "units": 64}):
        assert checked_point(RANGES, point, "point") == point
    assert checked_point({"x": ContinuousParameter(0, 1, step=0.1)}, {"x": 0.1 + 0.2}, "point") == {"x": 0.3}
