"""What is said while a job runs, where no terminal can draw."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from hpo.cost.limits import Limits
from hpo.cost.throughput import Countdown
from hpo.observers.live_view import LiveProgress, watcher_for
from hpo.observers.progress import Goal, PlainProgress
from hpo.search.observer import INTERRUPTED, STOP_REQUESTED, TERMINATED
from hpo.search.trial import UNTUNED
from hpo.text import clock_time, first_line, in_bytes, packed, roughly
from tests.support.refusals import mentions, missing_names
from tests.support.simulated import METRIC, PLAN, rising, simulate
from tests.support.watched import Watched
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment

GOAL = Goal(job="job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=PLAN)


def said(**options: Any) -> list[str]:
    lines: list[str] = []
    record = Watched(lambda clock: PlainProgress(GOAL, lines.append, clock))
    with record.watcher:
        simulate(record=record, **options)
    return lines


def test_a_line_an_event_with_the_seconds_in_front() -> None:
    lines = said()
    assert all(re.fullmatch(r" *\d+\.\d s  \S.*", line) for line in lines)
    seconds = [float(line.split()[0]) for line in lines]
    assert seconds == sorted(seconds)
    for names in (
        ("1 gang", "3 starting"),
        ("4 gangs", "0 starting"),
        ("bracket 1", 4, "1 unit", 7, "stopped"),
        ("bracket 3", 4, "10 units", 2, 3, "stopped"),
    ):
        assert any(not missing_names(line, *names) for line in lines), names
    rungs = sum(len(bracket.rungs) - 1 for bracket in PLAN.brackets)
    assert sum("bracket" in line for line in lines) == rungs
    values = [float(line.split(METRIC)[1].split()[0]) for line in lines if METRIC in line]
    assert values == sorted(values)
    assert len(values) > 3


def test_a_warning_of_a_trial_is_told_once_for_each_kind() -> None:
    lines = said(details={"warnings": {"twins": "lines come twice", "other_ranks": "worker 1 prints it"}})
    assert [sum(text in line and "warning" in line for line in lines) for text in ("twice", "worker 1")] == [1, 1]


def test_units_that_were_trained_again_are_told_once() -> None:
    (line,) = [line for line in said(details={"units_trained_again": 2}) if "checkpoint" in line]
    mentions(line, "warning", "rung")
    assert re.search(r"\bjob-\d+\b", line) or UNTUNED in line
    assert re.search(r"\b\d+ units\b", line)
    older = {"units_trained_again": 2, "went_on_from_unit": 7}
    (line,) = [line for line in said(details=older) if "checkpoint" in line]
    mentions(line, "warning", "unit 7", "step")


def test_it_is_never_silent_for_much_more_than_a_minute() -> None:
    lines = said(unit_seconds=lambda assignment: 20.0, parallel=2)
    still = [line.split("  ")[-1] for line in lines if not missing_names(line, 334, "units", 30, "trials")]
    assert len(still) > 5
    assert len(re.findall(r"\b\d+\b", still[2])) == 5, "what is done of each, and what is left"
    assert re.search(r"\b\d+ (s|min)\b", still[2])


def test_failures_are_named_until_they_repeat_themselves() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id in (UNTUNED, *(f"job-00{number}" for number in range(1, 8))):
            raise ValueError("max_depth is wrong\nand here is the trace")
        if assignment.trial_id == "job-008":
            raise ValueError("something else")
        return rising(assignment, step)

    failed = [line.split("  ")[-1] for line in said(curve=curve) if "fail" in line]
    assert sum(line.endswith("max_depth is wrong") for line in failed) == 3
    assert sum(not missing_names(line, "job-008", "something else") for line in failed) == 1
    [more] = [line for line in failed if not line.endswith(("max_depth is wrong", "something else"))]
    mentions(more, "trials")


def test_trials_that_diverge_are_called_that() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == "job-000":
            raise DivergedError("the loss is nan")
        return math.inf if assignment.trial_id in ("job-002", UNTUNED) else rising(assignment, step)

    lines = [line.split("  ")[-1] for line in said(curve=curve) if "diverge" in line]
    for names in (("job-000", "the loss is nan"), ("job-002", METRIC, "inf", 1), ("un-tuned", METRIC, "inf", 1)):
        assert sum(not missing_names(line, *names) for line in lines) == 1, (names, lines)
    assert len(lines) == 3


def test_that_it_stops_is_said_at_once_and_once() -> None:
    lines = said(limits=Limits(max_seconds=40.0))
    (line,) = [line for line in lines if "max_runtime_in_seconds" in line]
    assert "Ctrl-C" not in line


def test_after_ctrl_c_it_says_what_a_second_one_does() -> None:
    lines: list[str] = []
    watcher = PlainProgress(GOAL, lines.append)
    state = replace(simulate()[0].state, stopped=INTERRUPTED, gangs_busy=2)
    for _ in range(2):
        watcher.progress(state)
    (line,) = [line for line in lines if INTERRUPTED in line]
    mentions(line.replace(INTERRUPTED, ""), "15 s", "Ctrl-C")
    assert "resume" not in line


@pytest.mark.parametrize(
    ("reason", "named"),
    [(INTERRUPTED, True), (TERMINATED, True), (STOP_REQUESTED, True), ("max_cost reached: 2 EUR of 2 EUR", False)],
)
def test_who_stops_a_job_is_told_at_once_how_to_resume_it(reason: str, named: bool) -> None:
    lines: list[str] = []
    watcher = PlainProgress(replace(GOAL, resume="hpo resume job"), lines.append)
    watcher.progress(replace(simulate()[0].state, stopped=reason, gangs_busy=2))
    (line,) = [line for line in lines if reason in line]
    assert ("hpo resume job" in line) == named


# ---- which of the two


@pytest.mark.parametrize(
    ("console", "live"),
    [
        ({"force_terminal": True}, True),
        ({"force_terminal": False}, False),
        ({"force_jupyter": True}, False),
        ({"force_terminal": True, "_environ": {"TERM": "dumb"}}, False),
        ({"force_terminal": True, "_environ": {"TERM": "xterm-256color", "NO_COLOR": "1"}}, True),
    ],
)
def test_the_live_view_is_for_terminals(console: dict[str, Any], live: bool) -> None:
    environment = {"_environ": {"TERM": "xterm-256color"}}
    made = watcher_for(Console(file=io.StringIO(), **{**environment, **console}), GOAL)
    assert isinstance(made, LiveProgress if live else PlainProgress)


# ---- what is left


def test_nothing_is_left_to_say_before_it_was_measured() -> None:
    countdown = Countdown()
    countdown.see(0.0, None)
    assert countdown.left(1.0) is None


def test_it_counts_down_between_measurements_and_moves_slowly_at_one() -> None:
    countdown = Countdown()
    countdown.see(0.0, 100.0)
    assert countdown.left(30.0) == pytest.approx(70.0)
    countdown.see(30.0, 35.0)
    first = countdown.left(30.0)
    countdown.see(30.5, 34.5)
    second = countdown.left(30.5)
    assert first is not None
    assert second is not None
    assert 34.5 < second < first <= 70.0
    for tick in range(59):
        countdown.see(31.0 + tick / 2, 34.0 - tick / 2)
    assert countdown.left(60.0) == pytest.approx(5.0, abs=2.0)
    assert countdown.left(1e6) == 0.0


def test_words() -> None:
    assert [roughly(seconds) for seconds in (0, 5, 31, 61, 3600, 5000)] == [
        "5 s", "5 s", "35 s", "2 min", "60 min", "1.4 h",
    ]  # fmt: skip
    assert [clock_time(seconds) for seconds in (0, 61.9, 3725)] == ["0:00", "1:01", "1:02:05"]
    assert [in_bytes(number) for number in (0, 999, 1500, 2_000_000)] == ["0 B", "999 B", "1.5 kB", "2.0 MB"]
    assert first_line("\n  \n why \n how") == "why"
    assert packed(["aaa", "bbb", "ccc"], 9) == ["aaa, bbb,", "ccc"]
