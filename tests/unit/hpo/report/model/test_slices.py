"""Slices and contours: what they show of the surface, of trials, and on which axes."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, NormalParameter
from hpo.report import JobData
from hpo.report.model.axes import APART, Axis
from hpo.report.model.belief import Belief
from hpo.report.model.contours import contours, value_contours
from hpo.report.model.slices import ENDED, LOST, headline, slices, value_slices
from tests.support.records import by_function
from tests.support.refusals import mentions, missing_names


def believed(data: JobData) -> Belief:
    belief = Belief.of(data)
    assert belief is not None
    return belief


def hill(count: int = 40) -> JobData:
    """Best at `a` 0.3, whatever `b` is; what is far off diverges."""
    points = [dict(zip("ab", row, strict=True)) for row in np.random.default_rng(2).random((count, 2))]
    return by_function(lambda x: math.nan if x["a"] > 0.95 else -((x["a"] - 0.3) ** 2), points)


def test_a_slice_goes_through_the_best_configuration() -> None:
    data = hill()
    a, b = slices(believed(data), "ab")
    top = a.values[int(np.argmax(a.expected.middle))]
    assert top == pytest.approx(0.3, abs=0.08)
    assert a.span > 5 * b.span
    assert data.best is not None
    nearest = int(np.argmin(np.abs(np.array(a.values) - data.best.hyperparameters["a"])))
    assert a.expected.middle[nearest] == pytest.approx(data.objective(data.best), abs=0.05)
    told = mentions(headline([a, b]), "a")
    assert missing_names(told, "b")


def test_each_trial_is_a_point_and_the_lost_lie_on_the_worst_edge() -> None:
    data = hill()
    figure = value_slices(believed(data), "ab")
    assert figure is not None
    panel = [trace for trace in figure.interactive.data if trace.xaxis == "x"]
    shown = {number for trace in panel if trace.name == ENDED for number in trace.customdata}
    (lost,) = [trace for trace in panel if trace.name == LOST]
    assert data.best is not None
    ended = {trial.number for trial in data.trials if trial.status == "Completed"}
    assert shown == ended - {data.best.number}
    assert {*lost.customdata} == {trial.number for trial in data.trials if trial.status == "Diverged"}
    low, high = figure.interactive.layout.yaxis.range
    assert max(lost.y) < low + 0.05 * (high - low)
    entries = [trace.name for trace in figure.interactive.data if trace.showlegend]
    assert len(entries) == len(set(entries))


def test_a_contour_is_the_surface() -> None:
    belief = believed(hill())
    (found,) = contours(belief, "ab")
    row, column = 7, 3
    here = {"a": found.values[0][column], "b": found.values[1][row]}
    assert found.middle[row, column] == pytest.approx(belief.expected([here]).middle[0], rel=1e-5)
    figure = value_contours(belief, "ab")
    assert figure is not None
    assert figure.views == {}


@pytest.mark.parametrize(
    ("bounds", "texts"),
    [
        (ContinuousParameter(0, 1), ["0", "0.25", "0.5", "0.75", "1"]),
        (ContinuousParameter(1e-6, 10, "Logarithmic"), None),
        (ContinuousParameter(0.9, 0.9999, "ReverseLogarithmic"), ["0.9", "0.99", "0.999", "0.9999"]),
        (IntegerParameter(1, 3), ["1", "2", "3"]),
        (IntegerParameter(1, 1024, "Logarithmic"), None),
        (NormalParameter(0, 1), None),
        (ContinuousParameter(3e-4, 5e-4, "Logarithmic"), None),
        (CategoricalParameter(["a", "b", "a much longer name than fits"]), ["a", "b", "a much long…"]),
    ],
    ids=str,
)
def test_ticks_are_easy_to_read_and_have_room(bounds: Any, texts: list[str] | None) -> None:
    axis = Axis.of("h", bounds)
    assert texts is None or [text for _, text in axis.ticks] == texts
    if not axis.categorical:
        assert all(after - before >= APART for (before, _), (after, _) in pairwise(axis.ticks))
        for place, text in axis.ticks:
            assert bounds.position(float(text)) == pytest.approx(place, abs=0.02)
