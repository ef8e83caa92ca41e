"""Units of resource: how a program's metrics are counted, also after a pause."""

from __future__ import annotations

from hypothesis import given, strategies as st

from tests.support.refusals import mentions, refuses_each
from trainers.errors import ConfigurationError
from trainers.gangs import Report
from trainers.script.metric_lines import MetricDefinitions, Reading
from trainers.script.restarts import Past
from trainers.script.steps import StepCounter
from trainers.script.units import Units

VALUES = st.floats(allow_nan=False)
STEPS = st.none() | st.integers(1, 20)
READINGS = st.builds(
    lambda metrics, step: Reading(metrics=metrics, step=step),
    st.dictionaries(st.sampled_from(["a", "b"]), VALUES),
    STEPS,
)


def reported(units: Units, taken: list[Reading]) -> list[Report]:
    counted = [*(each for reading in taken for each in units.take(reading)), *units.rest()]
    return [Report(step=step, metrics=each.metrics) for each in counted for step in range(each.first, each.last + 1)]


def readings(*values: float, step: float | None = None, every: float = 1) -> list[Reading]:
    """Values of the objective, with steps from one on where there is one."""
    steps = [None if step is None else step + every * place for place in range(len(values))]
    return [
        Reading(metrics={"a": value}, step=each, source="line 3") for value, each in zip(values, steps, strict=True)
    ]


def values_of(units: Units, taken: list[Reading]) -> list[tuple[int, float]]:
    return [(each.step, each.metrics["a"]) for each in reported(units, taken)]


def paused(*values: float, **options: object) -> Units:
    """Units of a run behind a pause after these values, whose program has read its checkpoints."""
    known = {unit: {"a": value} for unit, value in enumerate(values, 1)}
    flat = len(values) > 1 and values[-1] == values[-2]
    past = Past(values=known, files={"state": float(len(values))}, flat=flat)
    given = {"resumed": True, "past": past, "last": {"a": values[-1]}, "read": lambda: {"state"}, **options}
    return Units("a", len(values), **given)


@given(st.lists(READINGS), st.integers(0, 10), st.booleans())
def test_reports_rise_by_one_without_a_gap(taken, start, resumed):
    units = Units("a", start, resumed=resumed)
    steps = [report.step for report in reported(units, taken)]
    assert steps == list(range(start + 1, start + 1 + len(steps)))
    assert units.reached == start + len(steps)


@given(st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES})), st.data())
def test_one_that_begins_again_and_one_that_goes_on_report_the_same(values, data):
    start = data.draw(st.integers(0, len(values)))
    again, on = Units("a", start), Units("a", start, resumed=True)
    taken = [Reading(metrics=each) for each in values]
    assert reported(again, taken) == reported(on, taken[start:])
    assert (again.trained_again(), on.trained_again()) == (start, 0)


@given(st.lists(VALUES), st.data(), st.booleans())
def test_steps_are_taken_at_their_word(values, data, resumed):
    start = data.draw(st.integers(0, len(values)))
    taken = [Reading(metrics={"a": value}, step=step) for step, value in enumerate(values, 1)]
    expected = reported(Units("a", start, resumed=True), taken[start:])
    assert reported(Units("a", start, resumed=resumed), taken) == expected


def test_other_metrics_have_their_latest_values():
    units = Units("a")
    taken = [{"a": 1.0}, {"b": 5.0}, {"a": 2.0}, {"b": 6.0, "a": 3.0}]
    assert [each.metrics for each in reported(units, [Reading(metrics=metrics) for metrics in taken])] == [
        {"a": 1.0},
        {"b": 5.0, "a": 2.0},
        {"b": 6.0, "a": 3.0},
    ]


def test_a_step_further_on_fills_and_one_that_was_there_is_ignored():
    units = Units("a")
    taken = [(2, 0.2), (2, 0.9), (1, 0.9), (4, 0.4)]
    found = reported(units, [Reading(metrics={"a": value}, step=step) for step, value in taken])
    assert [(each.step, each.metrics["a"]) for each in found] == [(1, 0.2), (2, 0.2), (3, 0.4), (4, 0.4)]


def test_a_step_far_on_costs_no_more_than_what_is_taken():
    (far,) = Units("a").take(Reading(metrics={"a": 1.0}, step=10**15))
    assert (far.first, far.last) == (1, 10**15)


def test_without_an_objective_the_metric_read_first_marks_units():
    units = Units("")
    taken = [{"x": 1.0}, {"y": 1.0}, {"x": 2.0}]
    assert [each.step for each in reported(units, [Reading(metrics=metrics) for metrics in taken])] == [1, 2]


def test_matches_that_were_no_numbers_are_explained():
    units = Units("a")
    assert units.explanation() == ""
    for text in ("abc", "xyz"):
        assert not list(units.take(Reading(metrics={}, refused={"a": text})))
    mentions(units.explanation(), "'a'", 2, "'xyz'", "0.5")


def test_a_metric_that_was_never_a_number_is_named_with_its_line() -> None:
    units, lines = Units("a"), MetricDefinitions([{"Name": name, "Regex": rf"{name}=(\S+)"} for name in "abc"])
    for line in ("a=0.5 b=-- c=--", "a=0.6 b=-- c=1"):
        for reading in lines.read(line):
            units.take(reading)
    mentions(units.without_numbers(), "'b'", 2, "'--'", "'a=0.6 b=-- c=1'")
    assert "'c'" not in units.without_numbers()


def test_a_program_that_read_its_checkpoint_goes_on_and_one_that_did_not_begins_again() -> None:
    assert values_of(paused(0.1, 0.2), readings(0.3, 0.4)) == [(3, 0.3), (4, 0.4)]
    again = paused(0.1, 0.2, read=lambda: ())
    assert values_of(again, readings(0.15, 0.25, 0.3, 0.4)) == [(3, 0.3), (4, 0.4)]
    assert again.trained_again() == 2
    assert again.trained_again() == 0


def test_a_program_that_gives_its_first_values_again_begins_again() -> None:
    again = paused(0.1, 0.2, 0.3, 0.35)
    assert values_of(again, readings(0.1, 0.2, 0.3, 0.35, 0.4)) == [(5, 0.4)]
    assert again.trained_again() == 4


def test_a_value_that_comes_again_by_chance_is_no_beginning() -> None:
    assert values_of(paused(0.1, 0.2), readings(0.1, 0.3)) == [(3, 0.1), (4, 0.3)]
    assert values_of(paused(0.1, 0.2), readings(0.1)) == [(3, 0.1)]


def test_values_that_are_printed_once_more_are_no_further_unit() -> None:
    units = paused(0.1, 0.2)
    assert values_of(units, readings(0.2, 0.3)) == [(3, 0.3)]
    assert units.trained_again() == 0
    assert units.past({}).evaluates_first is True
    assert values_of(paused(0.1), readings(0.1, 0.2)) == [(2, 0.2)]


def test_a_constant_metric_counts() -> None:
    assert values_of(paused(0.5, 0.5), readings(0.5, 0.5)) == [(3, 0.5), (4, 0.5)]
    known = Past(values={1: {"a": 0.1}}, evaluates_first=True, flat=True)
    assert values_of(paused(0.1, 0.5, 0.5, past=known), readings(0.5, 0.6)) == [(4, 0.6)]
    not_so = Past(values={1: {"a": 0.1}}, files={"state": 3.0}, evaluates_first=False)
    assert values_of(paused(0.1, 0.2, 0.5, past=not_so), readings(0.5, 0.6)) == [(4, 0.5), (5, 0.6)]


def test_another_metric_tells_whether_equal_values_are_the_same() -> None:
    """The seconds of an evaluation never are, and an accuracy may be by chance."""
    past = Past(values={1: {"a": 0.1, "loss": 3.0}})
    last = {"a": 0.2, "loss": 2.0, "seconds": 1.25}
    for loss, expected in ((2.0, []), (1.9, [3])):
        units = Units("a", 2, resumed=True, past=past, last=last, read=lambda: {"state"})
        found = units.take(Reading(metrics={"a": 0.2, "loss": loss, "seconds": 1.5}))
        assert [each.first for each in found] == expected


def test_a_fork_is_not_compared_with_its_parent_s_first_units() -> None:
    fork = paused(0.1, 0.2, past=Past())
    assert values_of(fork, readings(0.1, 0.2)) == [(3, 0.1), (4, 0.2)]
    begins = paused(0.1, 0.2, past=Past(), read=lambda: ())
    assert values_of(begins, readings(0.3, 0.4, 0.5)) == [(3, 0.5)]
    assert begins.past({}).values == {1: {"a": 0.3}, 2: {"a": 0.4}, 3: {"a": 0.5}}


def test_what_stays_loaded_must_not_begin_again_and_reports_each_unit_once() -> None:
    names = ("SM_CHECKPOINT_DIR", "warmband.report", "step", 2)
    refuses_each(
        [
            (lambda: reported(paused(0.1, 0.2, kept=True, read=lambda: ()), readings(0.5)), names),
            (lambda: reported(paused(0.1, 0.2, kept=True), readings(0.1, 0.2)), names),
        ],
        ConfigurationError,
    )
    assert values_of(paused(0.1, 0.2, kept=True), readings(0.2, 0.3)) == [(3, 0.2), (4, 0.3)]
    stepped = paused(0.1, 0.2, kept=True, read=lambda: ())
    assert values_of(stepped, readings(0.1, 0.2, 0.3, step=1)) == [(3, 0.3)]


def test_a_first_step_of_zero_is_the_first_unit_and_is_remembered() -> None:
    units = Units("a")
    assert values_of(units, readings(0.1, 0.2, 0.3, step=0)) == [(1, 0.1), (2, 0.2), (3, 0.3)]
    on = Units("a", 2, resumed=True, past=units.past({}), last={"a": 0.2})
    assert values_of(on, readings(0.3, step=2)) == [(3, 0.3)]
    again = Units("a", 2, resumed=True, past=units.past({}), last={"a": 0.2})
    assert values_of(again, readings(0.1, 0.2, 0.3, step=0)) == [(3, 0.3)]
    assert again.trained_again() == 2
    evaluates = Units("a", 2, resumed=True, past=units.past({}), last={"a": 0.2})
    assert values_of(evaluates, readings(0.2, 0.3, step=1)) == [(3, 0.3)]
    assert evaluates.trained_again() == 0


def test_a_counter_says_which_steps_are_units() -> None:
    for counter, steps, expected in (
        ({"first": 0, "every": 10}, [0, 10, 20], [1, 2, 3]),
        ({"every": 10}, [0, 10, 20], [1, 2, 3]),
        ({"every": 10}, [10, 20, 30], [1, 2, 3]),
        ({"first": 10, "every": 10}, [0, 10, 20], [1, 2]),
        ({"first": 1, "every": 0.33}, [1.0, 1.33, 1.66, 2.0], [1, 2, 3, 4]),
        ({"first": 0.33, "every": 0.33}, [0.33, 0.66, 1.0], [1, 2, 3]),
        ({"first": 1, "every": 1}, [1.0, 1.33, 1.66, 2.0], [1, 2]),
        ({"first": 0, "every": 100}, [0, 99, 200], [1, 2, 3]),
    ):
        units = Units("a", steps=StepCounter.of(counter))
        taken = [Reading(metrics={"a": step}, step=step) for step in steps]
        assert [report.step for report in reported(units, taken)] == expected, counter


def test_of_two_steps_that_are_one_unit_the_later_one_is_no_further_unit() -> None:
    units = Units("a", steps=StepCounter(first=0, every=10))
    assert values_of(units, readings(0.1, 0.2, 0.3, step=0, every=4)) == [(1, 0.1), (2, 0.3)]


def test_units_of_a_length() -> None:
    for counter, length, expected in (
        ({}, 9, 9),
        ({"first": 0}, 9, 9),
        ({"first": 0, "every": 100}, 400, 5),
        ({"first": 100, "every": 100}, 400, 4),
        ({"every": 100}, 450, 4),
        ({"first": 0.33, "every": 0.33}, 3, 9),
        ({"first": 0.1, "every": 0.1}, 3, 30),
        ({"first": 10, "every": 10}, 5, 0),
    ):
        assert StepCounter.of(counter).units_of_length(length) == expected, counter


def test_a_step_that_is_no_unit_is_refused_with_a_counter_that_takes_it() -> None:
    cases = [
        ([1.5], ("line 3", "1.5", "step: {first: 1.5, every: 1.5}")),
        ([1, 1.33], ("line 3", "1.33", "step: {first: 1, every: 0.33}")),
        ([-1], ("line 3", "-1", "step: {first: -1, every: 1}")),
        ([1, 2, 0], ("line 3", "0", "step: {first: 0, every: 1}")),
    ]

    def take(steps: list[float]) -> object:
        return reported(Units("a"), [Reading(metrics={"a": 1}, step=step, source="line 3") for step in steps])

    refuses_each([(lambda steps=steps: take(steps), names) for steps, names in cases], ConfigurationError)


def test_a_wrong_counter_is_refused() -> None:
    cases = [
        ("10", ("step", "'10'", "first", "every")),
        ({"start": 0}, ("step", "'start'", "first", "every", "key")),
        ({"every": 0}, ("step", "every", 0, 10)),
        ({"every": True}, ("step", "every", "True")),
        ({"first": float("nan")}, ("step", "first", "nan")),
        ({"key": ""}, ("step", "key", "''")),
    ]
    refuses_each([(lambda given=given: StepCounter.of(given), names) for given, names in cases], ConfigurationError)


def test_steps_that_jump_regularly_are_noticed_with_a_counter_that_fits() -> None:
    for steps, expected in (
        ([0, 10, 20], "step: {first: 0, every: 10}"),
        ([20, 40], "step: {first: 20, every: 20}"),
        ([100], "step: {first: 100, every: 100}"),
        ([1, 3, 5], "step: {first: 1, every: 2}"),
        ([4, 5, 6], "step: {first: 4, every: 1}"),
        ([20, 21], "step: {first: 20, every: 1}"),
        ([0, 1, 2], ""),
        ([1, 2, 3], ""),
        ([1, 3], ""),
        ([1, 2, 4], ""),
        ([], ""),
    ):
        units = Units("a")
        reported(units, [Reading(metrics={"a": 1}, step=step) for step in steps])
        assert units.jump() == expected
    fits = Units("a", steps=StepCounter(first=0, every=10))
    reported(fits, readings(1, 2, 3, step=0, every=10))
    assert fits.jump() == ""
