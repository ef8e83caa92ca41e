"""Points: checked values for some hyperparameters of a trial, or for all."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([{"eat": 0.1}], r"points_to_evaluate\[0\] has 'eat', which has no range.*did you mean 'eta'"),
        ([{"eta": 0.1}, {"eta": 5}], r"points_to_evaluate\[1\] has 'eta' 5; give a value of ContinuousParameter\(0.01"),
        ([{"eta": float("nan")}], "has 'eta' nan; give a value of"),
        ([{"eta": "0.1"}], "has 'eta' '0.1'; give a value of"),
        ([{"eta": True}], "has 'eta' True; give a value of"),
        ([{"max_depth": 2.5}], "has 'max_depth' 2.5; give a value of IntegerParameter"),
        ([{"booster": "gblinear"}], "has 'booster' 'gblinear'; give a value of CategoricalParameter"),
        ([{}], "is {}; give a value for one"),
        ([None], "is None; give a value for one"),
        ({"eta": 0.1}, "points_to_evaluate is {'eta': 0.1}; give a list"),
        ("eta", "points_to_evaluate is 'eta'; give a list"),
    ],
)
def test_what_is_no_point_is_refused(points: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        checked_points(RANGES, points)


def test_nothing_is_no_points() -> None:
    assert checked_points(RANGES, None) == []
