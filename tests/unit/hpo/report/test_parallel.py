"""Every trial as a line across its hyperparameters."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.report.pictures.parallel import GROUPS, LOST, coordinates, parallel_coordinates
from hpo.report.pictures.scales import fixed, position
from tests.support.records import made_up
from tests.support.refusals import mentions


def test_axes_are_the_ranges_and_the_score():
    axes, _ = coordinates(made_up())
    assert [axis.name for axis in axes] == [
        "eta",
        "alpha (log)",
        "max_depth",
        "rule",
        "colsample",
        "min_child_weight",
        "subsample",
        "validation:auc",
    ]
    assert axes[1].ticks == ((0.0, "1e-06"), (1.0, "10"))
    assert axes[3].ticks == ((1 / 6, "none"), (0.5, "linear"), (5 / 6, "sqrt"))
    assert axes[0].scatter == axes[-1].scatter == 0


def test_lines_lie_where_their_values_were_searched():
    data = made_up()
    _, lines = coordinates(data)
    assert {line.trial.trial_id for line in lines} == {trial.trial_id for trial in data.trials}
    for line in lines:
        values = line.trial.hyperparameters
        assert line.places[0] == pytest.approx((values["eta"] - 0.01) / 0.99)
        assert line.places[1] == pytest.approx((math.log10(values["alpha"]) + 6) / 7)
        assert line.places[3] == (["none", "linear", "sqrt"].index(values["rule"]) + 0.5) / 3
        assert all(0 <= place <= 1 for place in line.places[:-1])
        assert math.isnan(line.places[-1]) == (line.group == LOST)
    (best,) = [line for line in lines if line.trial == data.best]
    assert best.places[-1] == 1.0


@pytest.mark.parametrize("maximize", [True, False])
def test_quarters_are_by_score(maximize):
    data = made_up(maximize=maximize)
    _, lines = coordinates(data)
    sign = 1 if maximize else -1
    by_group = {group: [sign * line.trial.objective for line in lines if line.group == group] for group in GROUPS}
    assert {len(scores) for scores in by_group.values()} == {9, 10}
    for worse, better in pairwise(GROUPS):
        assert max(by_group[worse]) <= min(by_group[better])
    assert sum(line.group == LOST for line in lines) == 3


def test_fixed_and_too_many_hyperparameters_are_left_out():
    data = made_up()
    wide = {f"h{place}": {"type": "Categorical", "values": [1, 2]} for place in range(20)}
    alone = {"one": {"type": "Categorical", "values": ["only"]}}
    spec = {**data.job.spec, "hyperparameter_ranges": {**alone, **wide}}
    values = dict.fromkeys(wide, 1) | {"one": "only"}
    trials = tuple(replace(trial, hyperparameters=values) for trial in data.trials)
    many = replace(data, job=replace(data.job, spec=spec), trials=trials)
    axes, _ = coordinates(many)
    assert [axis.name for axis in axes] == [*[f"h{place}" for place in range(12)], "validation:auc"]
    mentions(parallel_coordinates(many).note, "9 hyperparameters")


def test_the_interactive_form_is_a_trace_a_group():
    data = made_up()
    figure = parallel_coordinates(data).interactive
    *groups, alone = [trace.name for trace in figure.data if trace.mode == "lines"]
    for name, group, lines in zip(groups, (LOST, *GROUPS), (3, 10, 9, 9, 9), strict=True):
        mentions(name, group, lines)
    mentions(alone, f"trial {data.best.number}", "0.7842")
    best = figure.data[5]
    assert np.isnan(best.y[-1])
    assert best.text[0] == f"eta: {data.best.hyperparameters['eta']:.4g}"
    assert best.text[-2] == "validation:auc: 0.7842"


numbers = st.floats(1e-6, 0.999)


@given(numbers, numbers, st.sampled_from(["Linear", "Logarithmic", "ReverseLogarithmic"]))
def test_positions_keep_the_order(first, second, scaling):
    bounds = ContinuousParameter(1e-6, 0.999, scaling)
    places = [position(bounds, value) for value in (first, second)]
    assert (places[0] <= places[1]) == (first <= second) or places[0] == pytest.approx(places[1])


def test_categories_that_python_takes_for_each_other_have_places_of_their_own():
    bounds = CategoricalParameter([1, 1.0, True, "1"])
    assert [position(bounds, value) for value in bounds.values] == [0, 1, 2, 3]


def test_what_leaves_no_choice_is_fixed():
    ranges = [CategoricalParameter(["a"]), IntegerParameter(3, 3), IntegerParameter(3, 4), CategoricalParameter([1, 2])]
    assert [fixed(bounds) for bounds in ranges] == [True, True, False, False]
