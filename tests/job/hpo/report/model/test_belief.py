"""What the model of a job learns, and how its scores come back to values."""

from __future__ import annotations

import math

import pytest

from hpo.ranges import IntegerParameter
from hpo.report import JobData
from hpo.report.model import model_figures
from tests.support.hpo.report.model.belief import MIXED, drawn, mixed
from tests.support.records import by_function, made_up


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
