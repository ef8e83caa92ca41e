"""Ranges: what is refused and why, what they say of themselves, and which values are theirs."""

from __future__ import annotations

import enum
import json
import math
import pickle
import re
import time
from collections import Counter

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
from tests.support.refusals import refuses, refuses_each
from trainers.errors import ConfigurationError

# What is refused


def test_what_is_refused_and_what_to_give_instead():
    scalings = ("Auto", "Linear", "Logarithmic", "ReverseLogarithmic")
    continuous = [
        (lambda: ContinuousParameter(5, 2), ("min_value", 5.0, "max_value", 2.0)),
        (lambda: ContinuousParameter(0, math.inf), ("max_value", "inf", "finite")),
        (lambda: ContinuousParameter(math.nan, 1), ("min_value", "nan", "finite")),
        (lambda: ContinuousParameter("0", 1), ("min_value", "'0'", "number")),
        (lambda: ContinuousParameter(0, True), ("max_value", True, "number")),
        (lambda: ContinuousParameter(0, 10**400), ("max_value", "1,329", "number")),
        (lambda: ContinuousParameter(-1.7e308, 1.7e308), ("min_value", "-1.7e+308", "max_value", "1.7e+308", "float")),
        (lambda: ContinuousParameter(1, 2, "log"), ("scaling_type", "log", *scalings)),
        (lambda: ContinuousParameter(1, 2, "Reverselog"), ("scaling_type", "Reverselog", *scalings)),
        (lambda: ContinuousParameter(1, 2, None), ("scaling_type", None, *scalings)),
        (lambda: ContinuousParameter(0, 1, "Logarithmic"), ("min_value", 0.0, "Logarithmic", "0", "Linear")),
        (
            lambda: ContinuousParameter(0, 1, "ReverseLogarithmic"),
            (0.0, 1.0, "ReverseLogarithmic", "0 <= min_value", "max_value < 1", "Linear"),
        ),
        (
            lambda: ContinuousParameter(-0.1, 0.5, "ReverseLogarithmic"),
            (-0.1, 0.5, "ReverseLogarithmic", "0 <= min_value", "max_value < 1", "Linear"),
        ),
        (lambda: ContinuousParameter(0, 1, step=0), ("step", 0.0, "0")),
        (lambda: ContinuousParameter(0, 1, step=-0.1), ("step", -0.1, "0")),
        (lambda: ContinuousParameter(0, 1, step=math.nan), ("step", "nan", "finite")),
        (lambda: ContinuousParameter(0.1, 1.05, step=0.1), ("max_value", 1.05, 0.1, 1.0, 1.1)),
        (lambda: ContinuousParameter(0, 1, step=1e-10), ("step", 1e-10, 0.0, 1.0)),
        (lambda: ContinuousParameter(1e15, 1e15 + 2, step=1), ("step", 1.0, 1e15, 1e15 + 2)),
        (lambda: ContinuousParameter(0, 1.7e308, step=1.7e308), ("step", 0.0, 1.7e308)),
    ]
    integer = [
        (lambda: IntegerParameter(1, 2.5), ("max_value", 2.5)),
        (lambda: IntegerParameter(0, 2**53 + 1), ("max_value", 2**53 + 1, "-2**53", "2**53")),
        (lambda: IntegerParameter(1, 10**5000), ("max_value", "16,610", "-2**53", "2**53")),
        (lambda: IntegerParameter(None, 1), ("min_value", None, "number")),
        (lambda: IntegerParameter(-1, 1, "Logarithmic"), ("min_value", -1, "Logarithmic", "0", "Linear")),
        (
            lambda: IntegerParameter(0, 0, "ReverseLogarithmic"),
            ("scaling_type", "ReverseLogarithmic", "ContinuousParameter", "Auto", "Linear", "Logarithmic"),
        ),
        (lambda: IntegerParameter(0, 4, step=0.5), ("step", 0.5)),
        (lambda: IntegerParameter(1, 100, step=10), ("max_value", 100, 10, 1, 91, 101)),
    ]
    normal = [
        (lambda: NormalParameter(0, 0), ("standard_deviation", 0.0, "0")),
        (lambda: NormalParameter(None, 1), ("mean", None, "number")),
        (lambda: NormalParameter(0, 1, "Auto"), ("scaling_type", "Auto", "Linear", "Logarithmic")),
        (
            lambda: NormalParameter(800, 1, "Logarithmic"),
            ("mean", 800.0, "standard_deviation", 1.0, "logarithm", "float"),
        ),
        (lambda: NormalParameter(0, 1e308), ("mean", 0.0, "standard_deviation", 1e308, "float")),
        (lambda: NormalParameter(0, 1, min_value=9), ("min_value", 9, "mean", 0, "standard_deviation", 1)),
        (
            lambda: NormalParameter(0.5, 0.1, step=3, min_value=0.2),
            ("step", 3, "min_value", 0.2, "mean", 0.5, "standard_deviation", 0.1),
        ),
        (lambda: NormalParameter(0, 1, step=-1), ("step", -1.0, "0")),
    ]
    categorical = [
        (lambda: CategoricalParameter([1, 10**400]), ("values[1]", "1,329", 64)),
        (lambda: CategoricalParameter([]), ("values", [])),
        (lambda: CategoricalParameter(["a", 1, "a"]), ("values", "'a'")),
        (lambda: CategoricalParameter(np.array([1, 1])), ("values", 1)),
        (lambda: CategoricalParameter([1, [2]]), ("values[1]", [2], "None", "boolean", "number", "string")),
        (lambda: CategoricalParameter(["a\0"]), ("values[0]", repr("a\0"), "UTF-8", "NUL")),
        (lambda: CategoricalParameter(["\ud800"]), ("values[0]", repr("\ud800"), "UTF-8")),
        (lambda: CategoricalParameter([math.nan]), ("values[0]", "nan", "finite")),
        (lambda: CategoricalParameter({"a", "b"}), ("values", {"a", "b"}, "list")),
        (lambda: CategoricalParameter({"a": 1}), ("values", {"a": 1}, "list")),
        (lambda: CategoricalParameter(b"ab"), ("values", "b'ab'", "list")),
        (
            lambda: CategoricalParameter([enum.StrEnum("Booster", "DART").DART]),
            ("values[0]", "Booster.DART", "None", "boolean", "number", "string"),
        ),
    ]
    refuses_each([(call, ("ContinuousParameter", *names)) for call, names in continuous], ConfigurationError)
    refuses_each([(call, ("IntegerParameter", *names)) for call, names in integer], ConfigurationError)
    refuses_each([(call, ("NormalParameter", *names)) for call, names in normal], ConfigurationError)
    refuses_each([(call, ("CategoricalParameter", *names)) for call, names in categorical], ConfigurationError)
    kinds = ("ContinuousParameter", "IntegerParameter", "NormalParameter", "CategoricalParameter")
    refuses_each(
        [
            (lambda: range_from_json({"type": "Free"}), ("Free", "to_json")),
            (lambda: search_space({"eta": 0.3}), ("hyperparameter_ranges['eta']", 0.3, *kinds, "hyperparameters")),
            (lambda: search_space({"a/b": IntegerParameter(1, 2)}), ("hyperparameter_ranges", "a/b", "'/'")),
        ],
        ConfigurationError,
    )
    for wrong, nearest in (("log", "Logarithmic"), ("Reverselog", "ReverseLogarithmic")):
        with refuses(ConfigurationError, value=wrong) as raised:
            ContinuousParameter(1, 2, wrong)
        named = Counter(word for word in re.findall(r"\w+", str(raised.value)) if word in scalings)
        assert named.most_common(1)[0][0] == nearest, "it is named as one of all, and as the nearest"


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


def test_many_values_are_compared_quickly_and_too_many_are_refused():
    began = time.process_time()
    assert CategoricalParameter(range(9000)).size == 9000
    assert time.process_time() - began < 1.0, "each was compared with all others: 3 s"
    assert CategoricalParameter([1, 1.0, True, "1"]).size == 4
    with refuses(ConfigurationError, field="values", value=0.5, remedy="once"):
        CategoricalParameter([*range(10), 0.5, 0.5])
    with refuses(ConfigurationError, field="values", value=10_001, remedy="10,000"):
        CategoricalParameter(range(10_001))


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
        with refuses(ConfigurationError, field="value", value=value):
            cast.cast_to_type(value)
