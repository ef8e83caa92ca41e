"""Metrics of a program, as they are read from its lines."""

from __future__ import annotations

import json
import math
import re
import time

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.properties import examples
from tests.support.refusals import mentions, refuses, refuses_each
from trainers.errors import ConfigurationError
from trainers.script.metric_lines import Lines, MetricDefinitions, Reading, check_definitions, read_json
from trainers.script.printed_numbers import number

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


@pytest.mark.parametrize(("text", "step"), [("0", 0), ("-1", -1), ("1.5", 1.5), ("1,200", 1200), ("3.", 3)])
def test_a_step_is_any_number(text, step):
    assert readings(f"epoch {text}: acc=0.5", {**STEPPED, "Regex": r"epoch (?P<step>[-\d.,]+): acc=(\S+)"}) == [
        Reading(metrics={"validation:accuracy": 0.5}, step=step)
    ]


def test_a_step_that_is_no_number_is_refused():
    words = {**STEPPED, "Regex": r"epoch (?P<step>\S+): acc=(\S+)"}
    with refuses(ConfigurationError, field=("step", "validation:accuracy"), value="'one'", remedy="1"):
        readings("epoch one: acc=0.5", words)


def test_a_wrong_definition_is_refused():
    first, group = "metric_definitions[0]", r"(?P<value>\S+)"
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


WHOLE = [
    ("loss=9.5e-05", 9.5e-05),
    ("loss=1,236.5", 1236.5),
    ("loss=1_236", 1236.0),
    ("loss=-3", -3.0),
    ("loss=+0.5", 0.5),
    ("loss=1e5,", 1e5),
    ("loss=.5", 0.5),
    ("loss=5.", 5.0),
    ("the end: loss=0.93.", 0.93),
    ("loss=93%", 93.0),
    ("(loss=0.93)", 0.93),
    ('"loss=2.5E+3"', 2500.0),
    ("loss=-inf", -math.inf),
]


@pytest.mark.parametrize(("line", "value"), WHOLE)
def test_the_expression_of_our_docs_reads_what_programs_print(line, value):
    assert readings(line, {"Name": "loss", "Regex": r"loss=(\S+)"}) == [Reading(metrics={"loss": value})]


@pytest.mark.parametrize(
    ("line", "longer"),
    [
        ("loss=9.5e-05", "9.5e-05"),
        ("loss=1,236.5 seconds=3", "1,236.5"),
        ("loss=1_236", "1_236"),
        ("loss= -3", "-3"),
        ("loss 1e5", "1e5"),
        ("loss: 0,93", "0,93"),
        ("loss:-.5", "-.5"),
        ("loss \u22120.5", "\u22120.5"),
        ("loss 5e-3s", "5e-3"),
    ],
)
def test_a_part_of_a_number_is_refused_with_an_expression_that_takes_the_whole(line, longer):
    regex = r"loss\W*?([0-9.]+)"
    with refuses(ConfigurationError, field=("a", regex), value=longer, remedy=line) as raised:
        readings(line, {"Name": "a", "Regex": regex})
    better = str(raised.value).rpartition("give '")[2].removesuffix("'")
    if "," in longer and "." not in longer:  # A comma for a point: no expression makes a number of it.
        mentions(str(raised.value), "whole")
    else:
        (found,) = readings(line, {"Name": "a", "Regex": better})
        assert found.metrics["a"] == number(longer)


def test_what_is_beside_a_whole_number_does_no_harm():
    cases = [
        ("epoch-3 loss 0.5", r"epoch-(\d+)", 3),
        ("top5: 0.5", r"top(\d)", 5),
        ("loss 0.5/1.0", "loss ([0-9.]+)", 0.5),
        ("at 12:30", r"at (\d+)", 12),
        ("93%", r"(\d+)%", 93),
        ("loss 0.93.", r"loss (\d\.\d+)", 0.93),
        ("loss +0.5", r"loss \+(\S+)", 0.5),
        ("0.5-0.7", r"-([0-9.]+)", 0.7),
        ("3it/s 5e", r"(\d)e", 5),
        ("loading...5 files", r"(\d) files", 5),
        ("[1,100] loss 0.5", r"\[(\d+),", 1),
        ("10,123.4", r"^\d+,(\S+)", 123.4),
        ("10,123.4", r"^(?P<step>\d+),(?P<value>\S+)", 123.4),
        ("[1,2,0.25]", r"([0-9.]+)\]", 0.25),
        ("loss 5.", r"loss (\d)", 5),
    ]
    for line, regex, value in cases:
        assert [each.metrics["a"] for each in readings(line, {"Name": "a", "Regex": regex})] == [value], line


@pytest.mark.parametrize("text", ["0x1p-3", "0X1F", "1.2.3", "1.5GB", "12.3s", "5e-3s", "1_2", "0.5/1.0", "0.5f", "1j"])
def test_what_is_no_number_is_none(text):
    assert readings(f"acc={text}, more", ACCURACY) == [Reading(metrics={}, refused={"validation:accuracy": f"{text},"})]
    assert number(text) is None


@pytest.mark.parametrize(("line", "longer"), [("loss 0x1p-3", "0x1p-3"), ("loss 1.2.3", "1.2.3")])
def test_a_part_of_what_is_no_number_is_refused(line, longer):
    with refuses(ConfigurationError, field="a", value=longer, remedy="whole"):
        readings(line, {"Name": "a", "Regex": r"loss (\d+(?:\.\d+)?)"})


FORMS = (
    repr,
    "{:g}".format,
    "{:.3e}".format,
    "{:,.2f}".format,
    "{:+}".format,
    lambda x: f"{x:,}".replace("-", "\u2212"),
)
AROUND = (
    *(
        "acc={}",
        "acc={} ",
        "acc={}, x=1",
        "acc={}.",
        "acc={}%",
        "acc={};",
        "(acc={})",
        '{{"acc={}"}}',
        "acc=[{}]",
        "acc='{}'",
    ),
    *(
        "acc={}s",
        "acc={}GB",
        "acc={}/1",
        "acc={}.5.1",
        "acc={}\u00b10.1",
        "acc=v{}",
        "acc=tensor({}, device='cpu')",
    ),
    *("\x1b[32macc=\x1b[1m{}\x1b[0m", " 10%|#  | acc={}\r100%|###| done", "acc={}\b\b\b\b\r\n", "x\racc={}\t5it/s"),
)


@given(st.floats(), st.sampled_from(FORMS), st.sampled_from(AROUND), st.sampled_from([r"acc=(\S+)", r"acc=([-+.\d]+)"]))
@settings(max_examples=examples(300))
def test_an_expression_reads_the_printed_number_or_refuses_it(value, form, around, regex):
    text = form(value)
    printed = float(text.replace(",", "").replace("\u2212", "-"))
    try:
        found = readings(around.format(text), {"Name": "a", "Regex": regex})
    except ConfigurationError:
        return
    for read in [each.metrics["a"] for each in found if each.metrics]:
        assert read == printed or (math.isnan(read) and math.isnan(printed))


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["{}", "{:.3e}", "{:,}", "{:.4f}", "{:+}"]))
def test_the_usual_expression_reads_a_number_or_refuses_it(value, form):
    """It never reads another number."""
    text = form.format(value)
    try:
        found = readings(f"loss: {text}, more", {"Name": "a", "Regex": r"loss: ?([0-9.]+)"})
    except ConfigurationError:
        return
    assert not found or found[0].metrics["a"] == float(text.replace(",", ""))


def test_the_step_has_its_own_key():
    line = '{"a": 1, "step": 3, "epoch": 0.5}'
    assert read_json(line, "r.jsonl", 1, "epoch") == Reading(metrics={"a": 1, "step": 3}, step=0.5)
    assert read_json('{"a": 1, "step": 3}', "r.jsonl", 1, "epoch") == Reading(metrics={"a": 1}, step=3)


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


@pytest.mark.parametrize("step", ["NaN", "true", '"3"', "[]"])
def test_a_json_step_that_is_no_number_is_refused(step):
    with refuses(ConfigurationError, field=("r.jsonl", "7", "step"), value=repr(json.loads(step)), remedy="1"):
        read_json(f'{{"a": 1, "step": {step}}}', "r.jsonl", 7)


@given(st.lists(st.binary(max_size=12)), st.integers(1, 8))
def test_lines_are_the_same_however_they_are_read(pieces, longest):
    whole, parts = Lines(longest), Lines(longest)
    at_once = whole.take(b"".join(pieces)) + whole.end()
    by_pieces = [line for piece in pieces for line in parts.take(piece)] + parts.end()
    assert by_pieces == at_once


@given(
    st.lists(st.floats(-1e20, 1e20), min_size=20, max_size=40),
    st.sampled_from(FORMS),
    st.sampled_from(["\r", " ", "\t", ";", "|"]),
    st.integers(50, 90),
)
def test_a_line_is_cut_in_no_number(values, form, between, longest):
    texts = [form(value) for value in values]
    lines = Lines(longest)
    cut = [*lines.take(between.join(f"acc={text}" for text in texts).encode()), *lines.end()]
    assert len(cut) > 1
    words = [word.removeprefix("acc=") for line in cut for word in re.split(r"[\r \t;|]", line)]
    assert [word for word in words if word] == texts


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
