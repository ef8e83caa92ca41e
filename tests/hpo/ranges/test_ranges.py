"""Ranges: what is refused and why, how they scale, and what a searcher's suggestions become."""

from __future__ import annotations

import enum
import json
import math
import pickle
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
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
    range_from_json,
    search_space,
)
from trainers.errors import ConfigurationError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"))
)


def bounds(numbers: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(numbers, numbers).map(sorted)


WHOLE = st.integers(-(2**53), 2**53)
REAL = st.floats(-1e300, 1e300)
ABOVE_ZERO = st.floats(1e-300, 1e300)
BELOW_ONE = st.floats(0, 1, exclude_max=True)


@st.composite
def stepped(draw: st.DrawFn) -> ParameterRange:
    """Ranges of steps as they are written: few decimals, of any scaling that fits."""
    if draw(st.booleans()):
        low, step = draw(st.integers(-1000, 1000)), draw(st.integers(1, 1000))
        scalings = ["Auto", "Linear", *(["Logarithmic"] if low > 0 else [])]
        made = IntegerParameter, low, low + step * draw(st.integers(0, 500)), step
    else:
        places = 10 ** draw(st.integers(0, 6))
        first, by, size = draw(st.integers(-1000, 1000)), draw(st.integers(1, 1000)), draw(st.integers(0, 500))
        low, high = first / places, (first + by * size) / places
        scalings = ["Auto", "Linear", *(["Logarithmic"] if low > 0 else [])]
        scalings += ["ReverseLogarithmic"] if 0 <= low <= high < 1 else []
        made = ContinuousParameter, low, high, by / places
    kind, low, high, step = made
    return kind(low, high, draw(st.sampled_from(scalings)), step=step)


@st.composite
def normal(draw: st.DrawFn) -> ParameterRange:
    scaling = draw(st.sampled_from(["Linear", "Logarithmic"]))
    mean, deviation = draw(st.floats(-50, 50)), draw(st.floats(0.01, 10))
    cut = [value if draw(st.booleans()) else None for value in (mean - deviation, mean + deviation)]
    low, high = [None if value is None or scaling == "Linear" else math.exp(value) for value in cut]
    return NormalParameter(mean, deviation, scaling, min_value=low, max_value=high)


STEPPED = stepped() | st.builds(
    lambda mean, deviation, step: NormalParameter(mean, deviation, step=step),
    st.floats(-50, 50),
    st.floats(1, 10),
    st.sampled_from([0.01, 0.1, 0.25, 1, 3]),
)
NUMERIC = st.one_of(
    STEPPED,
    normal(),
    st.builds(lambda pair: ContinuousParameter(*pair), bounds(REAL)),
    st.builds(lambda pair: ContinuousParameter(*pair, "Linear"), bounds(REAL)),
    st.builds(lambda pair: ContinuousParameter(*pair, "Logarithmic"), bounds(ABOVE_ZERO)),
    st.builds(lambda pair: ContinuousParameter(*pair, "ReverseLogarithmic"), bounds(BELOW_ONE)),
    st.builds(lambda pair: IntegerParameter(*pair), bounds(WHOLE)),
    st.builds(lambda pair: IntegerParameter(*pair, "Logarithmic"), bounds(st.integers(1, 2**53))),
)
CATEGORICAL = st.lists(SCALARS, min_size=1, max_size=6, unique_by=lambda value: (type(value), value)).map(
    CategoricalParameter
)
RANGES = NUMERIC | CATEGORICAL


def draw(ranges: dict[str, ParameterRange], seed: int, size: int = 1) -> list[dict[str, Any]]:
    """Suggestions drawn with Ray Tune's own samplers, decoded."""
    stream = np.random.default_rng(seed)
    space = search_space(ranges)
    return [
        decode(ranges, {name: domain.sample(random_state=stream) for name, domain in space.items()})
        for _ in range(size)
    ]


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ContinuousParameter(5, 2),
            "min_value is 5.0 and max_value is 2.0; give a min_value that is",
        ),
        (lambda: ContinuousParameter(0, math.inf), "ContinuousParameter: max_value is inf; give a finite number"),
        (lambda: ContinuousParameter(math.nan, 1), "ContinuousParameter: min_value is nan; give a finite number"),
        (lambda: ContinuousParameter("0", 1), "ContinuousParameter: min_value is '0'; give a finite number"),
        (lambda: ContinuousParameter(0, True), "ContinuousParameter: max_value is True; give a finite number"),
        (lambda: ContinuousParameter(0, 10**400), "give a finite number"),
        (lambda: ContinuousParameter(-1.7e308, 1.7e308), "further apart than a float can say; give a narrower range"),
        (lambda: IntegerParameter(1, 2.5), "IntegerParameter: max_value is 2.5; give a whole number"),
        (lambda: IntegerParameter(0, 2**53 + 1), "give a number from -2[*][*]53 to 2[*][*]53"),
        (lambda: IntegerParameter(None, 1), "IntegerParameter: min_value is None; give a finite number"),
        (
            lambda: ContinuousParameter(1, 2, "log"),
            "scaling_type is 'log'; give 'Auto', 'Linear', 'Logarithmic' or 'ReverseLogarithmic'; "
            "did you mean 'Logarithmic'",
        ),
        (lambda: ContinuousParameter(1, 2, "Reverselog"), "did you mean 'ReverseLogarithmic'"),
        (lambda: ContinuousParameter(1, 2, None), "scaling_type is None; give 'Auto', 'Linear'"),
        (lambda: ContinuousParameter(0, 1, "Logarithmic"), "min_value is 0.0 with .*; give a min_value above 0, or"),
        (lambda: IntegerParameter(-1, 1, "Logarithmic"), "min_value is -1 with .*; give a min_value above 0, or"),
        (lambda: ContinuousParameter(0, 1, "ReverseLogarithmic"), "0.0 to 1.0 .* 0 <= min_value and max_value < 1"),
        (lambda: ContinuousParameter(-0.1, 0.5, "ReverseLogarithmic"), "-0.1 to 0.5 .* 0 <= min_value"),
        (
            lambda: IntegerParameter(0, 0, "ReverseLogarithmic"),
            "which only a ContinuousParameter has; give 'Auto', 'Linear' or 'Logarithmic'",
        ),
        (lambda: ContinuousParameter(0, 1, step=0), "ContinuousParameter: step is 0.0; give a number above 0"),
        (lambda: ContinuousParameter(0, 1, step=-0.1), "step is -0.1; give a number above 0"),
        (lambda: ContinuousParameter(0, 1, step=math.nan), "ContinuousParameter: step is nan; give a finite number"),
        (lambda: IntegerParameter(0, 4, step=0.5), "IntegerParameter: step is 0.5; give a whole number"),
        (lambda: IntegerParameter(1, 100, step=10), "max_value is 100, which is .* 10 from 1; give 91 or 101"),
        (lambda: ContinuousParameter(0.1, 1.05, step=0.1), "max_value is 1.05, .*0.1 from 0.1; give 1.0 or 1.1"),
        (lambda: ContinuousParameter(0, 1, step=1e-10), "step is 1e-10 .* give a larger step"),
        (lambda: ContinuousParameter(1e15, 1e15 + 2, step=1), "give a larger step, or a narrower range"),
        (lambda: ContinuousParameter(0, 1.7e308, step=1.7e308), "give a larger step, or a narrower range"),
        (lambda: NormalParameter(0, 0), "NormalParameter: standard_deviation is 0.0; give a number above 0"),
        (lambda: NormalParameter(None, 1), "NormalParameter: mean is None; give a finite number"),
        (lambda: NormalParameter(0, 1, "Auto"), "scaling_type is 'Auto'; give 'Linear' or 'Logarithmic'"),
        (lambda: NormalParameter(800, 1, "Logarithmic"), "of the natural logarithm, .* give smaller ones"),
        (lambda: NormalParameter(0, 1e308), "larger than a float can say; give smaller ones"),
        (
            lambda: NormalParameter(0, 1, min_value=9),
            "min_value is 9.*leaves no value of mean 0 .*give others, or none",
        ),
        (lambda: NormalParameter(0.5, 0.1, step=3, min_value=0.2), "step 3, which leaves no value"),
        (lambda: NormalParameter(0, 1, step=-1), "NormalParameter: step is -1.0; give a number above 0"),
        (lambda: CategoricalParameter([]), "values is .*; give at least one value"),
        (lambda: CategoricalParameter(["a", 1, "a"]), "values has 'a' twice; give it once"),
        (lambda: CategoricalParameter(np.array([1, 1])), "values has 1 twice"),
        (lambda: CategoricalParameter([1, [2]]), r"values\[1\] is \[2\]; give None, a boolean, a number or a string"),
        (lambda: CategoricalParameter(["a\0"]), r"values\[0\] is 'a\\x00'; give text that UTF-8 can say, without NUL"),
        (lambda: CategoricalParameter(["\ud800"]), "give text that UTF-8 can say, without NUL"),
        (lambda: CategoricalParameter([math.nan]), r"values\[0\] is nan; give a finite number"),
        (lambda: CategoricalParameter({"a", "b"}), "values is .*; give a list"),
        (lambda: CategoricalParameter({"a": 1}), "values is {'a': 1}; give a list"),
        (lambda: CategoricalParameter(b"ab"), "values is b'ab'; give a list"),
        (lambda: CategoricalParameter([enum.StrEnum("Booster", "DART").DART]), "give None, a boolean"),
        (lambda: range_from_json({"type": "Free"}), "give what to_json"),
        (lambda: search_space({"eta": 0.3}), r"hyperparameter_ranges\['eta'\] is 0.3; give a .* trainer's hyper"),
        (lambda: search_space({"a/b": IntegerParameter(1, 2)}), "name 'a/b'; give a string without '/'"),
    ],
)
def test_what_is_refused_and_what_to_give_instead(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_whole_floats_are_integers_and_numpy_numbers_are_numbers():
    assert repr(IntegerParameter(3.0, np.int64(7))) == "IntegerParameter(3, 7)"
    assert repr(ContinuousParameter(np.float64(0.5), 2)) == "ContinuousParameter(0.5, 2.0)"


# What they say of themselves


def test_repr_is_what_makes_it_again():
    for made in (
        ContinuousParameter(0.01, 0.3),
        ContinuousParameter(0, 0.9, "ReverseLogarithmic"),
        IntegerParameter(1, 9, "Linear"),
        CategoricalParameter(["a", 1, None]),
        ContinuousParameter(0.1, 1, "Logarithmic", step=0.1),
        IntegerParameter(32, 256, step=32),
        NormalParameter(-3, 1, "Logarithmic", max_value=1),
        NormalParameter(0.5, 0.1, step=0.05),
    ):
        assert eval(repr(made)) == made


def test_sagemaker_form_is_strings():
    assert ContinuousParameter(0.1, 1).as_tuning_range("eta") == {
        "Name": "eta",
        "MinValue": "0.1",
        "MaxValue": "1.0",
        "ScalingType": "Auto",
    }
    assert IntegerParameter(1, 9, "Logarithmic").as_tuning_range("depth") == {
        "Name": "depth",
        "MinValue": "1",
        "MaxValue": "9",
        "ScalingType": "Logarithmic",
    }
    assert IntegerParameter(32, 256, step=32).as_tuning_range("units")["Step"] == "32"
    assert NormalParameter(2, 0.25).as_tuning_range("rate") == {
        "Name": "rate",
        "MinValue": "1.0",
        "MaxValue": "3.0",
        "ScalingType": "Linear",
        "Mean": "2.0",
        "StandardDeviation": "0.25",
    }
    assert CategoricalParameter(["a", 1, True]).as_tuning_range("c") == {"Name": "c", "Values": ["a", "1", "True"]}


def test_kinds_have_sagemakers_names():
    assert ContinuousParameter(0, 1).__name__ == "Continuous"
    assert IntegerParameter(0, 1).__name__ == "Integer"
    assert CategoricalParameter([0]).__name__ == "Categorical"
    assert CategoricalParameter.__name__ == "CategoricalParameter"


def test_equality_is_of_kind_bounds_scaling_and_types():
    assert ContinuousParameter(0, 1) == ContinuousParameter(0.0, 1.0)
    assert ContinuousParameter(0, 1) != IntegerParameter(0, 1)
    assert ContinuousParameter(0, 1) != ContinuousParameter(0, 1, "Linear")
    assert CategoricalParameter([1]) != CategoricalParameter([True])
    assert CategoricalParameter([1]) != CategoricalParameter([1.0])
    assert CategoricalParameter([1, 2]) != CategoricalParameter([2, 1])


@given(RANGES)
def test_json_and_pickle_give_the_same_range(made):
    again = range_from_json(json.loads(json.dumps(made.to_json(), allow_nan=False)))
    assert again == made
    assert repr(again) == repr(made)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("alone", ["gbtree", 3, 0.5, True, None])
def test_a_value_alone_is_a_list_of_one(alone):
    assert CategoricalParameter(alone).values == [alone]


def test_numpy_values_become_pythons_own():
    values = CategoricalParameter([np.int64(1), np.float64(0.5), np.bool_(True), np.str_("a")]).values
    assert [type(value) for value in values] == [int, float, bool, str]
    assert CategoricalParameter(np.arange(3)) == CategoricalParameter(range(3))


# Values


@pytest.mark.parametrize(
    ("made", "valid", "invalid"),
    [
        (ContinuousParameter(0, 1), [0, 1, 0.5, np.float32(0.5)], [-0.1, 1.1, "0.5", None, True, math.nan]),
        (IntegerParameter(1, 3), [1, 3, 2.0, np.int64(2)], [0, 4, 2.5, "2", None, True]),
        (CategoricalParameter([1, "a", None]), [1, "a", None, np.int64(1)], [True, 1.0, "1", "b", "None"]),
    ],
)
def test_is_valid(made, valid, invalid):
    assert all(made.is_valid(value) for value in valid)
    assert not any(made.is_valid(value) for value in invalid)


def test_cast_to_type_reads_strings():
    assert ContinuousParameter.cast_to_type("1e-3") == 0.001
    assert IntegerParameter.cast_to_type("9007199254740991") == 2**53 - 1
    assert IntegerParameter.cast_to_type("3.0") == 3
    values = CategoricalParameter([1, True, None, "1"])
    assert values.cast_to_type("True") is True
    assert values.cast_to_type("None") is None
    assert values.cast_to_type("1") == "1"
    assert values.cast_to_type(1) is values.values[0]
    for cast, value in ((ContinuousParameter, "x"), (IntegerParameter, "2.5"), (values, "2")):
        with pytest.raises(ConfigurationError, match=f"value is .*{value}"):
            cast.cast_to_type(value)


# Scaling


@pytest.mark.parametrize(
    ("made", "scaling"),
    [
        (ContinuousParameter(0.001, 1), "Logarithmic"),
        (ContinuousParameter(0.0011, 1), "Linear"),
        (ContinuousParameter(0, 1e9), "Linear"),
        (ContinuousParameter(-1, 1e9), "Linear"),
        (IntegerParameter(1, 1000), "Logarithmic"),
        (IntegerParameter(1, 999), "Linear"),
        (ContinuousParameter(0.001, 1, "Linear"), "Linear"),
        (ContinuousParameter(0, 0.5, "ReverseLogarithmic"), "ReverseLogarithmic"),
    ],
)
def test_auto_is_logarithmic_from_three_orders_of_magnitude_on(made, scaling):
    assert made.resolved_scaling == scaling


def shares(values: list[float], edges: list[float]) -> list[float]:
    """The share of values between each pair of edges."""
    return list(np.histogram(values, edges)[0] / len(values))


@pytest.mark.parametrize(
    ("made", "edges"),
    [
        (ContinuousParameter(1e-4, 1), [1e-4, 1e-3, 1e-2, 1e-1, 1]),
        (ContinuousParameter(0, 1, "Linear"), [0, 0.25, 0.5, 0.75, 1]),
        (IntegerParameter(1, 9999), [1, 10, 100, 1000, 10000]),
        (IntegerParameter(1, 40), [1, 11, 21, 31, 41]),
        # More of it near 1: as much from 0.999 to 0.9999 as from 0 to 0.9.
        (ContinuousParameter(0, 0.9999, "ReverseLogarithmic"), [0, 0.9, 0.99, 0.999, 0.9999]),
    ],
)
def test_each_scaling_searches_its_own_quarters_alike(made, edges):
    values = [row["x"] for row in draw({"x": made}, seed=5, size=4000)]
    # Six standard errors.
    assert shares(values, edges) == pytest.approx([0.25] * 4, abs=6 * math.sqrt(0.25 * 0.75 / 4000))


def test_both_ends_of_a_range_are_found():
    integers = {row["x"] for row in draw({"x": IntegerParameter(3, 5)}, seed=1, size=100)}
    logarithmic = {row["x"] for row in draw({"x": IntegerParameter(3, 5, "Logarithmic")}, seed=1, size=100)}
    assert integers == logarithmic == {3, 4, 5}


@given(STEPPED)
def test_steps_come_out_as_they_are_written(made: ParameterRange) -> None:
    values = made.members()
    assert len(values) == made.size
    assert values[0] == made.min_value
    assert values[-1] == made.max_value
    for place in {0, len(values) // 3, len(values) - 1}:
        value = values[place]
        start = 0 if isinstance(made, NormalParameter) else Decimal(repr(made.min_value))
        steps = (Decimal(repr(value)) - start) / Decimal(repr(made.step))
        assert abs(steps - round(steps)) < Decimal("1e-12")
        assert len(repr(value)) <= 12
        assert json.loads(json.dumps(value)) == value
        assert made.at(made.position(value)) == made.decode(made.encode(value)) == value
        assert made.is_valid(value)
        assert made.is_valid(value * (1 + 1e-16))
        assert not made.is_valid(value + 0.4 * made.step)


@pytest.mark.parametrize(
    ("made", "shares_of"),
    [
        (ContinuousParameter(0.1, 0.4, step=0.1), {0.1: 0.25, 0.2: 0.25, 0.3: 0.25, 0.4: 0.25}),
        # As much from 1 to 2 as from 2 to 4 as from 4 to 8.
        (IntegerParameter(1, 7, "Logarithmic", step=1), {1: 1 / 3, 2: math.log(1.5) / math.log(8)}),
        (ContinuousParameter(0, 0.9, "ReverseLogarithmic", step=0.1), {0.9: math.log(2) / math.log(11)}),
        (NormalParameter(0, 1, step=1), {0.0: 0.3829, 1.0: 0.2417, -2.0: 0.0606}),
        (NormalParameter(0, 1, "Logarithmic", max_value=1.5, step=1), {1.0: 1.0}),
    ],
)
def test_each_step_is_drawn_by_the_scale(made: ParameterRange, shares_of: dict[float, float]) -> None:
    counted = Counter(row["x"] for row in draw({"x": made}, seed=5, size=4000))
    for value, share in shares_of.items():
        assert counted[value] / 4000 == pytest.approx(share, abs=6 * math.sqrt(0.25 / 4000))


def test_equal_bounds_of_two_kinds_have_values_of_two_types() -> None:
    assert repr(ContinuousParameter(0, 2, step=1).members()) == "[0.0, 1.0, 2.0]"
    assert repr(IntegerParameter(0, 2, step=1).at(0.4)) == "1"


def test_normal_values_lie_around_the_mean_and_within_four_deviations() -> None:
    for made, scale in (
        (NormalParameter(3, 0.5), float),
        (NormalParameter(-3, 0.5, "Logarithmic"), math.log),
    ):
        values = [scale(row["x"]) for row in draw({"x": made}, seed=5, size=4000)]
        assert np.mean(values) == pytest.approx(made.mean, abs=0.05)
        assert np.std(values) == pytest.approx(0.5, abs=0.05)
        assert scale(made.min_value) == pytest.approx(made.mean - 2)
        assert scale(made.max_value) == pytest.approx(made.mean + 2)


def test_bounds_only_cut_a_normal_distribution() -> None:
    assert NormalParameter(10, 1, min_value=0) == NormalParameter(10, 1)
    made = NormalParameter(0, 1, min_value=0)
    values = [row["x"] for row in draw({"x": made}, seed=5, size=4000)]
    assert min(values) >= 0
    assert np.mean(values) == pytest.approx(math.sqrt(2 / math.pi), abs=0.05)


# From a searcher's suggestion to hyperparameters


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
    for wrong in ({"x": 0.2, "n": 3}, {"x": 0.1, "n": 1}, {"x": math.nan, "n": 3}, {"x": 0.1, "n": 3.5}):
        with pytest.raises(ConfigurationError, match=r"^[xn]: the suggestion is .*give the searcher the space"):
            decode(ranges, wrong)
    with pytest.raises(ConfigurationError, match=r"suggested \['x'\] for the ranges \['n', 'x'\]"):
        decode(ranges, {"x": 0.1})
    with pytest.raises(ConfigurationError, match="c: the suggestion is True; the range has 1 or 2"):
        decode({"c": CategoricalParameter([1, 2])}, {"c": True})


def test_values_that_python_calls_equal_are_all_suggested():
    values = [1, True, 1.0, "1", None]
    drawn = draw({"x": CategoricalParameter(values)}, seed=2, size=100)
    assert {(type(row["x"]), row["x"]) for row in drawn} == {(type(value), value) for value in values}


# With a real searcher of Ray Tune's


def test_optuna_takes_the_space_and_its_suggestions_decode():
    ranges: dict[str, ParameterRange] = {
        "eta": ContinuousParameter(1e-4, 1),
        "momentum": ContinuousParameter(0, 0.999, "ReverseLogarithmic"),
        "gamma": ContinuousParameter(-5, 5),
        "depth": IntegerParameter(2, 10),
        "batch": IntegerParameter(1, 4096, "Logarithmic"),
        "dropout": ContinuousParameter(0, 0.9, step=0.1),
        "decay": NormalParameter(-7, 1, "Logarithmic"),
        "fixed": ContinuousParameter(0.5, 0.5),
        "booster": CategoricalParameter(["gbtree", "dart", None]),
        "equal": CategoricalParameter([1, True, 1.0]),
    }
    search = OptunaSearch(seed=4)
    assert search.set_search_properties("auc", "max", search_space(ranges))
    seen = set()
    for number in range(40):
        row = decode(ranges, search.suggest(f"t{number}"))
        assert all(ranges[name].is_valid(value) for name, value in row.items())
        assert list(row) == list(ranges)
        assert type(row["depth"]) is type(row["batch"]) is int
        seen |= {(type(row["equal"]), row["equal"]), row["booster"]}
        search.on_trial_complete(f"t{number}", {"auc": row["eta"]})
    assert seen == {"gbtree", "dart", None, (int, 1), (bool, True), (float, 1.0)}


@settings(max_examples=25)
@given(RANGES)
def test_optuna_takes_every_range(made):
    ranges = {"x": made}
    search = OptunaSearch(seed=4)
    assert search.set_search_properties("auc", "max", search_space(ranges))
    assert made.is_valid(decode(ranges, search.suggest("t"))["x"])


# ---- as a model sees them


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
