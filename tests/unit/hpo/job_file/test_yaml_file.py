"""Job files as YAML 1.2: values, the places where they stand, and what cannot be read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hpo.job_file.yaml_file import Place, dotted, read, shown
from tests.support.refusals import mentions, missing_names, refuses
from trainers.errors import ConfigurationError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.yaml"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("010", 10),
        ("0x1f", 31),
        ("0o17", 15),
        ("1e-3", 0.001),
        ("1E5", 1e5),
        (".5", 0.5),
        ("3.", 3.0),
        ("-.inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("off", "off"),
        ("2026-01-31", "2026-01-31"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("-0x1f", "-0x1f"),
        ("=", "="),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("[1, a, [b]]", [1, "a", ["b"]]),
        ("{a: 1}", {"a": 1}),
    ],
)
def test_values_are_those_of_yaml_1_2(path: Path, text: str, value: Any) -> None:
    path.write_text(f"key: {text}\n")
    found = read(path).values["key"]
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_one(path: Path) -> None:
    path.write_text("key: .nan\n")
    assert math.isnan(read(path).values["key"])


def test_every_value_has_its_line(path: Path) -> None:
    path.write_text("a:\n  b: 1\n\n  c:\n    - x\n    - y: 2\nd: {e: 3}\n")
    file = read(path)
    lines = {("a",): 1, ("a", "b"): 2, ("a", "c"): 4, ("a", "c", 0): 5, ("a", "c", 1, "y"): 6, ("d", "e"): 7}
    assert {keys: file.place(keys) for keys in lines} == {keys: Place(line=line) for keys, line in lines.items()}
    assert file.place(("a", "missing")) == Place(line=1)
    assert file.place(("missing",)) is None


def test_an_alias_is_spelled_out(path: Path) -> None:
    path.write_text("a: &x {n: 1}\nb: *x\n")
    file = read(path, ["b.n=2"])
    assert file.values == {"a": {"n": 1}, "b": {"n": 2}}


def test_an_anchor_may_be_set_again(path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path.write_text("a: &x 1\nb: *x\nc: &x 2\nd: *x\n")
    assert read(path).values == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert not recwarn.list


def test_a_merge_key_is_a_key_as_others(path: Path) -> None:
    path.write_text("a: &x {n: 1}\nb: {<<: *x, m: 2}\n")
    assert read(path).values == {"a": {"n": 1}, "b": {"<<": {"n": 1}, "m": 2}}


def test_a_file_of_another_version_of_yaml(path: Path) -> None:
    path.write_text("%YAML 1.1\n---\na: yes\n")
    assert read(path).values == {"a": "yes"}, "the rules stay those of 1.2"
    for version in ("1.3", "2.0"):
        path.write_text(f"%YAML {version}\n---\na: yes\n")
        with refuses(ConfigurationError, field=("job.yaml", "YAML"), value="version"):
            read(path)


UNREADABLE: list[tuple[str, tuple[object, ...]]] = [
    ("eta: 1\nb: 2\neta: 3\n", ("line 3", "eta", "line 1")),
    ("g:\n  a: 1\n  a: 1\n", ("line 3", "g.a", "line 2")),
    ("g:\n  1: x\n", ("line 2", "g.1", "text", "quotes")),
    ("g:\n  true: x\n", ("line 2", "g.true", "text", "quotes")),
    ("a: 1\n: 2\n", ("line 2", "''", "text", "quotes")),
    ("a: 1\n? [x]\n: 2\n", ("line 2", "key", "text")),
    ("eta: !!binary aa\n", ("line 1", "eta", "'tag:yaml.org,2002:binary'", "tag")),
    ("eta: !!python/name:os.system x\n", ("line 1", "eta", "'tag:yaml.org,2002:python/name:os.system'", "tag")),
    ("eta: !mine {b: 1}\n", ("line 1", "eta", "'!mine'", "tag")),
    ("eta: !!int x\n", ("line 1", "eta", "'x'", "int")),
    ("eta: !!bool maybe\n", ("line 1", "eta", "'maybe'", "bool")),
    (f"eta: {'9' * 5000}\n", ("line 1", "eta", "int")),
    (f"eta: 0x{'f' * 5000}\n", ("line 1", "eta", "int")),
    ("eta: &x [*x]\n", ("levels", 20)),
]


def test_what_cannot_be_read_is_said_with_its_line(path: Path) -> None:
    faults = []
    for text, names in UNREADABLE:
        path.write_text(text)
        said = str(read(path).refusal([]))
        if all(missing_names(line, *names) for line in said.splitlines()):
            faults.append(f"{text[:40]!r}: no line has {names}: {said}")
    assert not faults, "\n".join(faults)


def test_brackets_without_end(path: Path) -> None:
    path.write_text("[" * 500)
    with refuses(ConfigurationError, field=("job.yaml", "levels"), value=20):
        read(path)


def test_an_override_takes_the_place_of_what_was_there(path: Path) -> None:
    path.write_text("a: {b: !!int x, c: 1}\n")
    file = read(path, ["a.b=[1, 2]", "d.e=5"])
    assert file.values == {"a": {"b": [1, 2], "c": 1}, "d": {"e": 5}}
    assert file.problems == []
    assert str(file.place(("a", "b", 1))) == "--set a.b=[1, 2]"
    assert str(file.place(("d",))) == "--set d.e=5"
    assert str(file.place(("a", "c"))) == "line 1"


def test_an_override_does_not_hide_that_a_key_is_there_twice(path: Path) -> None:
    path.write_text("a: 1\na: 2\n")
    mentions(str(read(path, ["a=3"]).refusal([])), "line 2", "line 1")


def test_problems_come_by_line_and_the_command_lines_last(path: Path) -> None:
    path.write_text("a: 1\na: 2\nb: 1\nb: 2\n")
    first, *lines = str(read(path, ["nope"]).refusal([])).splitlines()
    assert str(path) in first
    for line, place in zip(lines, ["line 2", "line 4", "--set nope"], strict=True):
        mentions(line, place)


def test_keys_and_values_are_shown_as_in_the_file() -> None:
    assert dotted(("a", "b-c", 0, "odd key", "x.y", "\x1b[31m")) == r"a.b-c.0.'odd key'.'x.y'.'\x1b[31m'"
    assert [shown(value) for value in (None, True, -math.inf, "x", [1, None])] == [
        "null",
        "true",
        "-.inf",
        "'x'",
        "[1, null]",
    ]
    assert len(shown("x" * 1000)) < 60
    assert shown({"a": {"b": 1}}) == "{a: {b: 1}}"
