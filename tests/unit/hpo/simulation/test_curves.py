"""The table of recorded curves: nearest configurations, the scale of regret, and what is missing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from hpo.ranges import ContinuousParameter
from hpo.ranking import Ranking
from hpo.simulation import Curves, RecordedCurve
from tests.support.curves import RANGES, UNITS, recorded, table
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError

MOST = Ranking(maximize=True)


def test_a_recorded_configuration_is_nearest_to_itself() -> None:
    curves = table()
    assert [curves.nearest(each) for each in curves.configurations] == list(range(len(curves)))


@given(st.floats(0.001, 1), st.integers(1, 6), st.sampled_from(["gbtree", "dart"]))
def test_the_nearest_is_nearest_on_the_scales_of_the_ranges(eta: float, depth: int, booster: str) -> None:
    curves = table()

    def apart(other: dict) -> float:
        return (
            (math.log10(eta / other["eta"]) / 3) ** 2
            + ((depth - other["max_depth"]) / 5) ** 2
            + (booster != other["booster"])
        )

    found = curves.configurations[curves.nearest({"eta": eta, "max_depth": depth, "booster": booster, "more": 1})]
    assert apart(found) == pytest.approx(min(map(apart, curves.configurations)))


def test_the_nearest_that_is_left_is_the_next_nearest() -> None:
    curves, taken = table(), list[int]()
    for _ in range(len(curves)):
        taken.append(curves.nearest({"eta": 0.1, "max_depth": 3, "booster": "dart"}, taken))
    assert sorted(taken) == list(range(len(curves)))
    apart = [(curves.configurations[row]["booster"] != "dart") for row in taken]
    assert apart.index(True) > 5, "another category is far"


def test_reverse_logarithmic_ranges_tell_values_near_one_apart() -> None:
    made = [RecordedCurve(configuration={"beta": beta}, values=[1.0], seconds=[1.0]) for beta in (0.9, 0.99, 0.999)]
    curves = Curves("made", {"beta": ContinuousParameter(0, 0.9999, "ReverseLogarithmic")}, made)
    assert [curves.nearest({"beta": beta}) for beta in (0.92, 0.985, 0.9985)] == [0, 1, 2]


def test_regret_is_none_at_the_best_and_one_at_the_median() -> None:
    curves = table(61)
    final = sorted(row[-1] for row in curves.values)
    assert curves.regret(final[-1], MOST) == 0
    assert curves.regret(final[30], MOST) == 1
    assert curves.regret(math.nan, MOST) == 1


@given(st.floats(-5, 5))
def test_regret_of_losses_mirrors_that_of_scores(value: float) -> None:
    losses = [replace(curve, values=[-each for each in curve.values]) for curve in recorded()]
    mirrored = Curves("made", RANGES, losses).regret(-value, Ranking(maximize=False))
    assert mirrored == pytest.approx(table().regret(value, MOST))


def test_diverged_curves_are_the_worst_of_the_median() -> None:
    curves = table(60, diverged=20)
    going = sorted(row[-1] for row in curves.values[20:])
    assert curves.regret(going[10], MOST) == pytest.approx(1)
    assert list(curves.diverged_at[:21]) == [3] * 20 + [UNITS + 1]


def test_most_curves_diverged_leave_no_median() -> None:
    assert table(60, diverged=40).regret(0.5, MOST) is None


def test_a_curve_that_ends_early_goes_on_at_its_last_value_and_pace() -> None:
    whole = recorded(2)
    curves = Curves("made", RANGES, [whole[0], replace(whole[1], values=[0.1, 0.2], seconds=[3.0, 8.0])])
    assert list(curves.values[1]) == [0.1] + [0.2] * (UNITS - 1)
    assert list(curves.seconds[1][:5]) == [0, 3, 8, 12, 16]
    assert curves.ended_early == 1
    assert curves.regret(0.5, MOST) is None
    mentions(curves.notes[-1], 1, "curves", "regret")


def test_configurations_outside_of_the_ranges_are_left_out() -> None:
    narrow = {**RANGES, "eta": ContinuousParameter(0.01, 0.1)}
    curves = Curves("made", narrow, recorded())
    assert 0 < len(curves) == 60 - curves.left_out
    with refuses(ConfigurationError, field=("made", "configuration"), value=60, remedy="ranges"):
        Curves("made", {**RANGES, "eta": ContinuousParameter(2, 3)}, recorded())
