"""Ranges: what is refused and why, what they say of themselves, and which values are theirs."""

from __future__ import annotations

import enum
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    NormalParameter,
    range_from_json,
    search_space,
)
from tests.support.ranges import RANGES
from trainers.errors import ConfigurationError

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
        (lambda: IntegerParameter(1, 10**5000), "max_value is a whole number of 16,610 bits; give a number from -2"),
        (
            lambda: CategoricalParameter([1, 10**400]),
            "values.1. is a whole number of 1,329 bits; give a number of at mo",
        ),
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
