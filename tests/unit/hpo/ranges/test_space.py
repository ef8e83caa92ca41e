"""What a searcher's suggestions become, and where values lie as a model sees them."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings, strategies as st
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    ParameterRange,
    decode,
    encode,
    search_space,
)
from tests.support.properties import examples
from tests.support.ranges import NUMERIC, RANGES, draw
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


@given(st.dictionaries(st.text("abc", min_size=1), RANGES, min_size=1, max_size=4), st.integers(0, 2**32))
def test_what_is_drawn_is_in_range_and_of_its_type(ranges, seed):
    for row in draw(ranges, seed, size=3):
        assert list(row) == list(ranges)
        for name, value in row.items():
            assert ranges[name].is_valid(value)
            match ranges[name]:
                case ContinuousParameter() | NormalParameter():
                    assert type(value) is float
                case IntegerParameter():
                    assert type(value) is int
                case CategoricalParameter(values=values):
                    assert any(value is own for own in values)


@given(NUMERIC)
def test_the_ends_of_a_domain_are_the_ends_of_its_range(made):
    domain = made.domain()
    assume(hasattr(domain, "lower") and made.step is None and not isinstance(made, NormalParameter))
    last = domain.upper - isinstance(made, IntegerParameter)
    ends = sorted(made.decode(end) for end in (domain.lower, last))
    assert ends == [made.min_value, made.max_value] or made.resolved_scaling == "ReverseLogarithmic"
    assert ends == pytest.approx([made.min_value, made.max_value], abs=1e-15)


def test_a_range_of_one_value_is_a_choice_of_one():
    ranges = {
        "a": ContinuousParameter(0.3, 0.3),
        "b": IntegerParameter(4, 4, "Logarithmic"),
        "c": ContinuousParameter(0.7, 0.7, "ReverseLogarithmic"),
        "d": CategoricalParameter("x"),
    }
    assert all(isinstance(domain, tune.search.sample.Categorical) for domain in search_space(ranges).values())
    assert draw(ranges, seed=0) == [{"a": 0.3, "b": 4, "c": 0.7, "d": "x"}]


def test_rounding_is_clamped_and_anything_more_is_refused():
    ranges = {"x": ContinuousParameter(0, 0.1), "n": IntegerParameter(3, 5)}
    assert decode(ranges, {"x": 0.1 + 2e-17, "n": 2}) == {"x": 0.1, "n": 3}
    for name, wrong in (("x", 0.2), ("n", 1), ("x", math.nan), ("n", 3.5)):
        with refuses(ConfigurationError, field=name, value=wrong, remedy="search_space"):
            decode(ranges, {"x": 0.1, "n": 3, name: wrong})
    with refuses(ConfigurationError, field="['n', 'x']", value=["x"], remedy="search_space"):
        decode(ranges, {"x": 0.1})
    with refuses(ConfigurationError, field="c", value=True, remedy=("1", "2")):
        decode({"c": CategoricalParameter([1, 2])}, {"c": True})


def test_values_that_python_calls_equal_are_all_suggested():
    values = [1, True, 1.0, "1", None]
    drawn = draw({"x": CategoricalParameter(values)}, seed=2, size=100)
    assert {(type(row["x"]), row["x"]) for row in drawn} == {(type(value), value) for value in values}


@settings(max_examples=examples(25))
@given(RANGES)
def test_optuna_takes_every_range(made):
    ranges = {"x": made}
    search = OptunaSearch(seed=4)
    assert search.set_search_properties("auc", "max", search_space(ranges))
    assert made.is_valid(decode(ranges, search.suggest("t"))["x"])


@given(RANGES, st.integers(0, 2**32 - 1))
def test_a_value_has_a_position_and_back(bounds: ParameterRange, seed: int) -> None:
    value = draw({"x": bounds}, seed)[0]["x"]
    position = bounds.position(value)
    assert 0 <= position <= 1
    again = bounds.at(position)
    assert bounds.is_valid(again)
    if isinstance(bounds, CategoricalParameter):
        assert (type(again), again) == (type(value), value)
    elif bounds.min_value < bounds.max_value:
        assert abs(bounds.position(again) - position) < 1e-6


@given(RANGES, st.floats(0, 1))
def test_every_position_has_a_value_of_the_range(bounds: ParameterRange, position: float) -> None:
    assert bounds.is_valid(bounds.at(position))


@given(NUMERIC)
def test_the_ends_are_at_the_ends(bounds: ContinuousParameter | IntegerParameter) -> None:
    assert bounds.at(0) == pytest.approx(bounds.min_value, rel=1e-9)
    assert bounds.at(1) == pytest.approx(bounds.max_value, rel=1e-9)


@given(RANGES, st.floats(0, 1))
def test_a_searcher_that_suggests_values_gives_points_of_the_space(bounds: ParameterRange, position: float) -> None:
    value = bounds.at(position)
    decoded = decode({"x": bounds}, encode({"x": bounds}, {"x": value}))["x"]
    assert bounds.is_valid(decoded)
    if isinstance(bounds, NormalParameter) and bounds.step is None:
        assert decoded == pytest.approx(value, abs=1e-9 * max(abs(bounds.min_value), abs(bounds.max_value)))
    elif isinstance(bounds, ContinuousParameter) and bounds.step is None:
        assert decoded == pytest.approx(value, abs=1e-15, rel=1e-12)
    else:
        assert (type(decoded), decoded) == (type(value), value)
