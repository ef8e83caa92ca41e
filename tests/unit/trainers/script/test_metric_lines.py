"""Metrics of a program: what is read from its lines, and the units that readings make."""

from __future__ import annotations

import itertools
import json
import math
import time

import pytest
from hypothesis import given, strategies as st

from tests.support.refusals import mentions, refuses, refuses_each
from trainers.errors import ConfigurationError
from trainers.script.metric_lines import Lines, MetricDefinitions, Reading, Units, check_definitions, read_json

ACCURACY = {"Name": "validation:accuracy", "Regex": r"acc=(\S+)"}
LOSS = {"Name": "loss", "Regex": r"loss: (?P<value>[-+.\deE]+|nan|inf)"}
STEPPED = {"Name": "validation:accuracy", "Regex": r"epoch (?P<step>-?[\d.]+): acc=(\S+)"}


def readings(line: str, *definitions: dict[str, str], objective: str = "") -> list[Reading]:
    return list(MetricDefinitions(list(definitions), objective).read(line))


def test_every_metric_of_a_line_is_read():
    assert readings("loss: 1e-3 acc=0.5\n", ACCURACY, LOSS) == [
        Reading(metrics={"validation:accuracy": 0.5, "loss": 0.001})
    ]
    assert readings("nothing of the kind", ACCURACY, LOSS) == []


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[32macc=\x1b[1m0.5\x1b[0m",
        "10%|###  |\r100%|#####| acc=0.5",
        "\x1b]0;title\x07acc=0.5\r\n",
        "[rank0]:acc=0.5.",
    ],
)
def test_what_terminals_take_hides_no_match(line):
    assert readings(line, ACCURACY) == [Reading(metrics={"validation:accuracy": 0.5})]


def test_each_part_between_carriage_returns_is_read():
    assert [each.metrics["validation:accuracy"] for each in readings("acc=1\racc=2\r\n", ACCURACY)] == [1, 2]


def test_a_text_that_is_no_number_is_kept_for_the_error():
    assert readings("acc=abc", ACCURACY) == [Reading(metrics={}, refused={"validation:accuracy": "abc"})]
    (found,) = readings("loss: nan", LOSS)
    assert math.isnan(found.metrics["loss"])


def test_a_named_group_gives_the_step():
    assert readings("epoch 3: acc=0.5", STEPPED) == [Reading(metrics={"validation:accuracy": 0.5}, step=3)]


@pytest.mark.parametrize("step", ["0", "-1", "1.5"])
def test_a_step_that_is_no_unit_is_refused(step):
    with refuses(ConfigurationError, field=("step", "validation:accuracy"), value=f"'{step}'", remedy="1"):
        readings(f"epoch {step}: acc=0.5", STEPPED)


def test_a_wrong_definition_is_refused():
    first, group = "metric_definitions[0]", "(?P<value>[0-9.]+)"
    cases = [
        ("acc", ("metric_definitions", "'acc'", "list", "'Name'", "'Regex'")),
        ([{"Name": "a"}], (first, {"Name": "a"}, "'Regex'")),
        ([{"Name": "", "Regex": "(a)"}], (first, {"Name": "", "Regex": "(a)"}, "strings")),
        ([{"Name": "a", "Regex": "(a)", "regex": "b"}], (first, "'regex'", "'Name'")),
        ([{"Name": "a", "Regex": "(a"}], (first, "'(a'", "'a'", "re")),
        ([{"Name": "a", "Regex": "a"}], (first, "'a'", 0, group)),
        ([{"Name": "a", "Regex": "(a)(b)"}], (first, "'(a)(b)'", "'a'", 2, group)),
        ([{"Name": "a", "Regex": "(?P<step>a)"}], (first, "'(?P<step>a)'", "'a'", 0, group)),
        ([{"Name": "step", "Regex": "(a)"}], (first, "'step'")),
        ([ACCURACY, ACCURACY], ("metric_definitions[1]", first, "validation:accuracy")),
    ]
    refuses_each([(lambda given=given: check_definitions(given), names) for given, names in cases], ConfigurationError)


def test_no_definitions_are_right():
    check_definitions(None)
    check_definitions([])


def test_a_json_line_is_read():
    line = '{"validation:accuracy": 0.9, "step": 3, "done": true, "note": "x"}'
    assert read_json(line, "r.jsonl", 1) == Reading(
        metrics={"validation:accuracy": 0.9}, step=3, refused={"note": '"x"'}
    )
    assert read_json("\n", "r.jsonl", 1) is None


@pytest.mark.parametrize("line", ["acc=0.9", "[1]", '{"a": 1'])
def test_a_line_that_is_no_json_object_is_refused(line):
    with refuses(ConfigurationError, field=("r.jsonl", "7"), value=repr(line), remedy="JSON"):
        read_json(line, "r.jsonl", 7)


@pytest.mark.parametrize("step", ["0", "true", '"3"', "1.5"])
def test_a_json_step_that_is_no_unit_is_refused(step):
    with refuses(ConfigurationError, field=("r.jsonl", "7", "step"), value=repr(json.loads(step)), remedy="1"):
        read_json(f'{{"a": 1, "step": {step}}}', "r.jsonl", 7)


VALUES = st.floats(allow_nan=False)
STEPS = st.none() | st.integers(1, 20)
READINGS = st.builds(
    lambda metrics, step: Reading(metrics=metrics, step=step),
    st.dictionaries(st.sampled_from(["a", "b"]), VALUES),
    STEPS,
)


def reported(units: Units, taken: list[Reading]) -> list:
    return [report for each in taken for report in units.take(each)]


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
    assert (again.repeated, on.repeated) == (start, 0)


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
    far = Units("a").take(Reading(metrics={"a": 1.0}, step=10**15))
    assert [each.step for each in itertools.islice(far, 2)] == [1, 2]


def test_without_an_objective_the_metric_read_first_marks_units():
    units = Units("")
    taken = [{"x": 1.0}, {"y": 1.0}, {"x": 2.0}]
    assert [each.step for each in reported(units, [Reading(metrics=metrics) for metrics in taken])] == [1, 2]


def test_matches_that_were_no_numbers_are_explained():
    units = Units("a")
    assert units.explanation() == ""
    for text in ("abc", "xyz"):
        assert not list(units.take(Reading(metrics={}, refused={"a": text})))
    mentions(units.explanation(), "'a'", 2, "'xyz'")
    single = Units("")  # A single training compares nothing.
    assert not list(single.take(Reading(metrics={}, refused={"a": "n.a"})))
    mentions(single.explanation(), "'a'", "'n.a'")


@given(st.lists(st.binary(max_size=12)), st.integers(1, 8))
def test_lines_are_the_same_however_they_are_read(pieces, longest):
    whole, parts = Lines(longest), Lines(longest)
    at_once = whole.take(b"".join(pieces)) + whole.end()
    by_pieces = [line for piece in pieces for line in parts.take(piece)] + parts.end()
    assert by_pieces == at_once


def test_a_line_waits_for_its_end_and_a_very_long_one_is_cut():
    lines = Lines(longest=4)
    assert lines.take(b"ab") == []
    assert lines.take(b"c\nd") == ["abc"]
    assert lines.take(b"efghi") == ["defg"]
    assert lines.end() == ["hi"]


@pytest.mark.parametrize("regex", [".*acc=([0-9.]+).*", ".*?acc=([0-9.]+)", ".*(?:acc|accuracy)=([0-9.]+)"])
def test_an_expression_that_begins_with_anything_is_quick_on_a_long_line(regex):
    definitions = MetricDefinitions([{"Name": "a", "Regex": regex}])
    began = time.process_time()
    for line in Lines().take(b"x" * 20_000 + b"\nb=1 acc=0.1 acc=0.25\n"):
        found = [reading.metrics["a"] for reading in definitions.read(line)]
    assert found == [0.1 if "?a" in regex else 0.25]
    assert time.process_time() - began < 10


def test_a_number_that_no_float_can_hold_is_infinite():
    reading = read_json(f'{{"a": -1{"0" * 400}, "b": 7}}', "r.jsonl", 1)
    assert reading == Reading(metrics={"a": -math.inf, "b": 7.0})
