"""What the model of a job learns, and how its scores come back to values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, NormalParameter
from hpo.report import JobData
from hpo.report.model import model_figures
from tests.support.records import by_function, made_up

MIXED = {
    "rate": ContinuousParameter(1e-4, 1.0, "Logarithmic"),
    "keep": ContinuousParameter(0.5, 0.999, "ReverseLogarithmic"),
    "width": IntegerParameter(8, 64, step=8),
    "drop": NormalParameter(0.0, 1.0),
    "kind": CategoricalParameter([True, 1, "1", None]),
    "same": ContinuousParameter(0.5, 0.5),
}


def drawn(count: int, ranges: Any = MIXED) -> list[dict[str, Any]]:
    places = np.random.default_rng(4).random((count, len(ranges)))
    return [{name: b.at(float(x)) for (name, b), x in zip(ranges.items(), row, strict=True)} for row in places]


def mixed(count: int, **options: Any) -> JobData:
    return by_function(lambda x: -((math.log10(x["rate"]) + 2) ** 2) - x["width"] / 64, drawn(count), MIXED, **options)


@pytest.mark.parametrize(
    "data",
    [
        mixed(20),
        mixed(20, maximize=False),
        by_function(lambda x: math.nan if x["rate"] > 0.1 else x["rate"], drawn(30), MIXED),
        by_function(lambda x: 1e30 * x["rate"], drawn(12), MIXED),
        by_function(lambda x: x["rate"], drawn(9), {"rate": MIXED["rate"]}),
        by_function(lambda x: float(x["kind"] is None), drawn(20), {"kind": MIXED["kind"], "width": MIXED["width"]}),
        by_function(
            lambda x: x["width"],
            drawn(20, {"width": IntegerParameter(1, 2), "a": IntegerParameter(0, 9)}),
            {"width": IntegerParameter(1, 2), "a": IntegerParameter(0, 9)},
        ),
        made_up(trials=12, ended=False),
        made_up(trials=30, hostile=True, maximize=False),
    ],
    ids=["mixed", "least", "diverged", "huge", "one", "categories", "two values", "running", "hostile"],
)
def test_whatever_was_tuned_has_its_pictures(data: JobData) -> None:
    figures = model_figures(data)
    names = [figure.name for figure in figures]
    assert "slices" in names
    assert ("contours" in names) == ("importance" in names) == (len(data.ranges) > 1)
    for figure in figures:
        assert "nan" not in figure.title.lower().split()
        figure.still()
        for view in figure.views.values():
            view.to_json()
        assert '"nan"' not in figure.interactive.to_json().lower()
