"""Processes that print a program's metric beside the one that counts, or into its stream."""

from __future__ import annotations

import pytest

from tests.support.refusals import mentions
from trainers.script.metric_lines import MetricDefinitions
from trainers.script.several_printers import Twins, Unread, bar_prints, others_print, twins_print

ACCURACY = {"Name": "acc", "Regex": r"acc[= ]+(\S+)"}
STEPPED = {"Name": "acc", "Regex": r"epoch (?P<step>\d+) acc=(\S+)"}
BAR_STEP = r"(?P<step>\d+)/100.*acc=(?P<value>[\d.]+)"
HOGWILD = "{pid}\tTrain Epoch: {epoch} [{at}/600 ({at}%)]\tacc {value:.6f}"


def twin(*lines: str, definition: dict[str, str] = ACCURACY) -> str:
    twins = Twins(MetricDefinitions([definition]).read, "acc")
    assert all(list(twins(line)) for line in lines)
    return twins.line


def twice(*lines: str) -> list[str]:
    return [each for line in lines for each in (line, line)]


@pytest.mark.parametrize(
    "lines",
    [
        twice("epoch 1 acc=0.5", "epoch 2 acc=0.6"),
        ["epoch 1 acc=0.51", "epoch 1 acc=0.52", "epoch 2 acc=0.61", "epoch 2 acc=0.60"],
        ["[rank0] epoch 1 acc=0.5", "[rank1] epoch 1 acc=0.5", "[rank1] epoch 2 acc=0.6", "[rank0] epoch 2 acc=0.6"],
        twice("acc=0.5", "acc=0.6", "acc=0.7"),
        [HOGWILD.format(pid=pid, epoch=1, at=at, value=at / 7 + pid) for at in (0, 10, 20) for pid in (401, 402)],
        [f"2026-01-01 10:00:0{epoch},{at} INFO epoch {epoch} acc=0.5" for epoch in (1, 2) for at in (123, 125)],
    ],
    ids=["same values", "other values", "ranks", "no counter", "hogwild", "times"],
)
def test_lines_that_come_twice_are_found(lines):
    assert twin(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        [f"epoch {epoch} acc=0.9" for epoch in range(1, 9)],
        ["acc=0.5", "acc=0.6", "acc=0.6", "acc=0.61", "acc=0.62", "acc=0.62"],
        ["acc=0.98"] * 9,
        [f"{part} acc={value}" for value in (0.1, 0.2, 0.3, 0.4) for part in ("train", "valid")],
        [f"step {step} acc=0.{step}" for _ in range(3) for step in (1, 2, 3)],
        twice("epoch 1 acc=0.5"),
    ],
    ids=["epochs", "values that stay", "one value", "two kinds", "steps of each epoch", "once"],
)
def test_a_program_that_prints_for_itself_is_none(lines):
    assert not twin(*lines)


def test_lines_that_give_their_step_are_counted_right():
    assert not twin(*twice("epoch 1 acc=0.5", "epoch 2 acc=0.6", "epoch 3 acc=0.7"), definition=STEPPED)


def test_a_line_that_has_the_metric_several_times_is_a_progress_bar_s() -> None:
    bar = "\r".join(f"{done:3}%|#  | {done}/100 [00:01, acc=0.{done}]" for done in (10, 20, 30))
    for definition, expected in ((ACCURACY, "30%|#  | 30/100 [00:01, acc=0.30]"), ({**STEPPED, "Regex": BAR_STEP}, "")):
        twins = Twins(
            MetricDefinitions([{**definition, "Regex": definition["Regex"].replace(r"\S", r"[\d.]")}]).read, "acc"
        )
        for line in (bar, bar):
            assert len(list(twins(line))) == 3
        assert (twins.bar, twins.line) == (expected, "")
    once = Twins(MetricDefinitions([ACCURACY]).read, "acc")
    for epoch in range(9):
        list(once(f"epoch {epoch}\racc=0.{epoch}\r"))
    assert once.bar == ""


def test_output_that_does_not_count_is_searched_until_the_metric_was_found():
    read: list[str] = []

    def reading(line):
        read.append(line)
        return MetricDefinitions([ACCURACY, {"Name": "loss", "Regex": r"loss=(\S+)"}]).read(line)

    unread = Unread(reading, "acc")
    assert [unread(line) for line in ("hello", "loss=1", "acc=0.5", "acc=0.6")] == [()] * 4
    assert (unread.metric, read) == ("acc", ["hello", "loss=1", "acc=0.5"])


def test_a_step_that_is_none_of_another_rank_is_no_error():
    unread = Unread(MetricDefinitions([{"Name": "acc", "Regex": r"epoch (?P<step>\S+) acc=(\S+)"}]).read, "")
    assert unread("epoch ? acc=0.5") == ()


def test_the_warnings_name_who_prints_and_a_remedy():
    mentions(others_print(["worker 1", "worker 2"], "acc", too=True), "worker 1", "worker 2", "'acc'", "rank 0")
    mentions(twins_print("epoch 1 acc=0.5"), "'epoch 1 acc=0.5'", "'step'", "(?P<step>")
    mentions(bar_prints("3/9 acc=0.5"), "3/9 acc=0.5", "step", "line")
