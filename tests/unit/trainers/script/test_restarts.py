"""Programs without a step that are started again: from which unit they go on, and how their units are counted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from tests.support.refusals import mentions
from trainers.script.metric_lines import Reading
from trainers.script.restarts import Past, Position, Restart, UnitTimes
from trainers.script.units import Units


def counted(units: Units, values: Sequence[float]) -> list[tuple[int, float]]:
    found = [each for value in values for each in units.take(Reading(metrics={"a": value}))] + units.rest()
    return [(each.first, each.metrics["a"]) for each in found]


def restart(*values: float, files: dict[str, float] | None = None, flat: bool = False) -> Restart:
    """A trial with these values."""
    past = Past(values={unit: {"a": value} for unit, value in enumerate(values, 1)}, files=files or {}, flat=flat)
    return Restart(start=len(values), past=past, last={"a": values[-1]}, objective="a")


def found(trial: Restart, *first: float, read: set[str] | None = None) -> Position | None:
    return trial.position([{"a": value} for value in first], read)


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12, unique=True).map(sorted),
    every=st.integers(1, 6),
    pauses=st.sets(st.integers(1, 11)),
    evaluates=st.booleans(),
    knows=st.sampled_from(["nothing", "reads", "time before", "time after"]),
)
def test_each_unit_has_its_own_value_for_any_interval_of_checkpoints_and_any_pauses(
    values: list[float], every: int, pauses: set[int], evaluates: bool, knows: str
) -> None:
    stops = [*sorted(stop for stop in pauses if stop < len(values)), len(values)]
    reports: list[tuple[int, float]] = []
    past, again = Past(), 0
    for start, stop in pairwise([0, *stops]):
        saved = start - start % every
        reads = None if knows == "nothing" else {"state"} if saved else set()
        units = Units(
            "a",
            start,
            resumed=saved > 0,
            past=past,
            last={"a": values[start - 1]} if start else None,
            read=partial(lambda files: files, reads),
        )
        evaluated = values[saved - 1 : saved] if evaluates else []
        reports += counted(units, [*evaluated, *values[saved:stop]])
        again += units.trained_again()
        newest = stop - stop % every
        files = {"state": newest - 0.1 if knows == "time before" else newest + 0.1} if knows.startswith("time") else {}
        past = units.past(files)
    assert reports == list(enumerate(values, 1))
    if knows.startswith("time") and not evaluates:
        assert again == sum(start % every for start in stops[:-1])


@given(st.lists(st.sampled_from([0.1, 0.2, float("nan")]), min_size=1, max_size=8), st.lists(st.floats(), min_size=3))
def test_a_position_is_known_after_three_values_and_no_further_than_the_trial(
    values: list[float], first: list[float]
) -> None:
    position = found(restart(*values), *first)
    assert position is not None
    assert 0 <= position.unit <= len(values)


def test_the_time_of_the_file_that_was_read_tells_where_values_are_new() -> None:
    for written, unit, known in (
        (5.0, 5, True),
        (4.9, 5, True),
        (5.7, 5, True),
        (4.6, 5, False),
        (4.1, 4, False),
        (3.9, 4, False),
        (2.0, 2, False),
    ):
        trial = restart(0.1, 0.2, 0.3, 0.4, 0.5, files={"state": written, "settings": 0.1})
        position = found(trial, 0.55, read={"state", "settings"})
        assert position is not None
        assert (position.unit, not position.reason) == (unit, known), written
    best = found(restart(0.1, 0.2, 0.3, files={"latest": 3.0, "best": 1.1}), 0.25, read={"best"})
    assert best is not None
    assert best.unit == 1


def test_files_of_several_units_make_the_unit_an_estimate() -> None:
    """The model is saved at some units, and the list of its values at each."""
    trial = restart(0.1, 0.2, 0.3, 0.4, files={"model": 3.1, "history": 4.0, "settings": 0.1})
    for read, estimated in (({"model", "history", "settings"}, True), ({"history", "settings"}, False)):
        position = found(trial, 0.35, read=read)
        assert position is not None
        assert (position.unit, bool(position.reason)) == (4, estimated)


def test_values_that_come_again_tell_more_than_the_file() -> None:
    trial = restart(0.1, 0.2, 0.3, 0.4, 0.5, files={"state": 5.0})
    assert found(trial, 0.1, 0.2, read={"state"}) is None
    assert found(trial, 0.1, 0.2, 0.3, read={"state"}) == Position(unit=0, matched=True)
    assert found(trial, 0.4, 0.5, read={"state"}) == Position(unit=3, matched=True)
    assert found(trial, 0.4, 0.6, read={"state"}) == Position(unit=5)
    older = restart(0.1, 0.2, 0.3, 0.4, 0.5, files={"state": 4.1})
    assert found(older, 0.5, read={"state"}) == Position(unit=4, matched=True)


def test_values_that_stand_at_several_units_are_an_estimate_near_the_file() -> None:
    position = found(restart(1, 2, 1, 2, 3, files={"state": 2.1}), 1, 2, 3, read={"state"})
    assert position == Position(unit=2, matched=True)
    twice = found(restart(1, 2, 1, 1, 2, 1, 3, files={"state": 3.1}), 1, 2, 1, read={"state"})
    assert twice is not None
    assert (twice.unit, twice.matched, bool(twice.reason)) == (3, True, True)


@pytest.mark.parametrize("value", [0.5, float("nan")])
def test_where_the_metric_stays_the_same_the_file_tells(value: float) -> None:
    for written, unit in ((6.0, 6), (4.1, 4)):
        trial = restart(*[value] * 6, files={"state": written}, flat=True)
        position = found(trial, value, read={"state"})
        assert position is not None
        assert position.unit == unit
    unknown = found(restart(*[value] * 6, flat=True), value)
    assert unknown is not None
    assert unknown.unit == 6
    assert unknown.reason


def test_where_nothing_tells_it_goes_on_and_the_warning_names_what_was_assumed() -> None:
    units = Units(
        "a", 2, resumed=True, past=Past(values={1: {"a": 0.1}, 2: {"a": 0.2}}), last={"a": 0.2}, read=lambda: None
    )
    assert counted(units, [0.3]) == [(3, 0.3)]
    mentions(units.guess(), "step", 2, "estimated", r"(?P<step>\d+)")
    known = Units("a", 2, resumed=True, past=Past(files={"state": 2.0}), last={"a": 0.2}, read=lambda: {"state"})
    assert counted(known, [0.3]) == [(3, 0.3)]
    assert known.guess() == ""


def test_a_file_s_time_is_a_unit() -> None:
    times = UnitTimes(100.0)
    assert times.unit_at(101.0) is None
    for unit in range(4, 8):
        times.reported(unit, 100.0 + 10 * (unit - 3))
    for at, unit in ((99.0, None), (105.0, 3.5), (111.0, 4.1), (129.0, 5.9), (131.0, 6.1), (200.0, 7.0)):
        assert times.unit_at(at) == (None if unit is None else pytest.approx(unit)), at


def test_what_is_saved_at_each_unit_before_it_is_reported_is_the_last_unit_s() -> None:
    """It evaluates for longer than it trains, and prints then."""
    times = UnitTimes(0.0)
    for unit in (1, 2, 3):
        times.reported(unit, 10.0 * unit)
        times.wrote(10.0 * unit - 7)
    assert times.unit_at(23.0) == 3.0
    every_second = UnitTimes(0.0)
    for unit in (1, 2, 3):
        every_second.reported(unit, 10.0 * unit)
    every_second.wrote(20.1)
    assert every_second.unit_at(20.1) == pytest.approx(2.01)


def test_units_that_are_kept_are_few_and_the_first_ones_stay() -> None:
    units = Units("a")
    counted(units, [float(value) for value in range(1, 2_001)])
    kept = units.past({}).values
    assert len(kept) < 400
    assert {1, 2, 3, 2_000} <= set(kept)
    assert units.times.unit_at(0.0) is None
