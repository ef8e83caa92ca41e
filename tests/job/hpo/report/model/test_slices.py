"""Slices and contours: what they show of the surface, of trials, and on which axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpo.ranges import CategoricalParameter, ContinuousParameter
from hpo.report import JobData
from hpo.report.model import model_figures
from hpo.report.model.belief import Belief
from hpo.report.model.contours import MOST, contours, value_contours
from hpo.report.model.slices import slices, value_slices
from tests.support.records import by_function, made_up


def believed(data: JobData) -> Belief:
    belief = Belief.of(data)
    assert belief is not None
    return belief


def test_a_category_has_its_value_and_no_line() -> None:
    data = made_up(trials=40)
    order = list(believed(data).names)
    figure = value_slices(believed(data), order)
    assert figure is not None
    place = order.index("rule") + 1
    (model,) = [t for t in figure.interactive.data if t.xaxis == f"x{place}" and t.name == "the model"]
    assert model.mode == "markers"
    assert len(model.x) == 3
    assert list(figure.interactive.layout[f"xaxis{place}"].ticktext) == ["none", "linear", "sqrt"]


def test_pairs_of_the_most_important_can_be_chosen() -> None:
    belief = believed(made_up(trials=40))
    order = list(belief.names)
    found = contours(belief, order)
    assert len(found) == MOST * (MOST - 1) // 2
    assert (found[0].across.name, found[0].upward.name) == (order[0], order[1])
    figure = value_contours(belief, order)
    assert figure is not None
    assert list(figure.views) == [each.label for each in found]
    assert figure.interactive is figure.views[found[0].label]
    kinds = {each.label: figure.views[each.label].data[0].type for each in found}
    assert {kinds[each.label] for each in found if each.upward.categorical} == {"heatmap"}
    assert kinds[found[0].label] == "contour"


def test_what_has_a_condition_has_a_slice_through_the_best_trial_that_has_it() -> None:
    ranges: dict[str, Any] = {
        "kind": CategoricalParameter(["sgd", "adam"]),
        "momentum": ContinuousParameter(0.0, 1.0, when={"kind": ["sgd"]}),
        "beta": ContinuousParameter(0.0, 1.0, when={"kind": ["adam"]}),
    }
    random = np.random.default_rng(6)
    points: list[dict[str, Any]] = [{"kind": "sgd", "momentum": float(x)} for x in random.random(15)]
    points += [{"kind": "adam", "beta": float(x)} for x in random.random(15)]
    data = by_function(lambda x: x["momentum"] if x["kind"] == "sgd" else x["beta"] - 1, points, ranges)
    belief = believed(data)
    assert len(belief.observations) == 30
    cut = {each.axis.name: each for each in slices(belief, list(ranges))}
    assert np.argmax(cut["momentum"].expected.middle) == len(cut["momentum"].values) - 1
    assert cut["momentum"].expected.middle.max() > cut["beta"].expected.middle.max()
    sgd, adam = cut["kind"].expected.middle
    assert sgd > adam
    assert {figure.name for figure in model_figures(data)} >= {"importance", "slices", "contours", "predictions"}
