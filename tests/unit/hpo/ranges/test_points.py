"""Points: checked values for some hyperparameters of a trial, or for all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from hpo.ranges import (
    CategoricalParameter,
    ContinuousParameter,
    IntegerParameter,
    ParameterRange,
    checked_point,
    checked_points,
)
from tests.support.refusals import refuses_each
from trainers import ConfigurationError

RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.01, 1),
    "max_depth": IntegerParameter(1, 8),
    "booster": CategoricalParameter(["gbtree", 1, True, None]),
}


@pytest.mark.parametrize(
    ("values", "point"),
    [
        ({"eta": 0.1}, {"eta": 0.1}),
        ({"eta": np.float32(0.5), "max_depth": np.int64(3)}, {"eta": 0.5, "max_depth": 3}),
        ({"eta": 1}, {"eta": 1.0}),
        ({"max_depth": 3.0}, {"max_depth": 3}),
        ({"booster": None}, {"booster": None}),
        ({"booster": np.str_("gbtree")}, {"booster": "gbtree"}),
    ],
)
def test_values_are_of_their_ranges_types(values: dict[str, Any], point: dict[str, Any]) -> None:
    checked = checked_point(RANGES, values, "point")
    assert checked == point
    assert {name: type(value) for name, value in checked.items()} == {
        name: type(value) for name, value in point.items()
    }


def test_equal_values_of_a_category_keep_their_types() -> None:
    assert checked_point(RANGES, {"booster": True}, "point")["booster"] is True
    assert type(checked_point(RANGES, {"booster": 1}, "point")["booster"]) is int


def test_what_is_no_point_is_refused() -> None:
    refused: list[tuple[object, tuple[object, ...]]] = [
        ([{"eat": 0.1}], ("points_to_evaluate[0]", "eat", "eta", "max_depth", "booster")),
        ([{"eta": 0.1}, {"eta": 5}], ("points_to_evaluate[1]", "eta", 5, "ContinuousParameter(0.01, 1.0)")),
        ([{"eta": float("nan")}], ("points_to_evaluate[0]", "eta", "nan", "ContinuousParameter(0.01, 1.0)")),
        ([{"eta": "0.1"}], ("points_to_evaluate[0]", "eta", "'0.1'", "ContinuousParameter(0.01, 1.0)")),
        ([{"eta": True}], ("points_to_evaluate[0]", "eta", True, "ContinuousParameter(0.01, 1.0)")),
        ([{"max_depth": 2.5}], ("points_to_evaluate[0]", "max_depth", 2.5, "IntegerParameter(1, 8)")),
        ([{"booster": "gblinear"}], ("points_to_evaluate[0]", "booster", "gblinear", "CategoricalParameter")),
        ([{}], ("points_to_evaluate[0]", {})),
        ([None], ("points_to_evaluate[0]", None)),
        ({"eta": 0.1}, ("points_to_evaluate", {"eta": 0.1}, "list")),
        ("eta", ("points_to_evaluate", "'eta'", "list")),
    ]
    refuses_each([(partial(checked_points, RANGES, points), names) for points, names in refused], ConfigurationError)


def test_nothing_is_no_points() -> None:
    assert checked_points(RANGES, None) == []
