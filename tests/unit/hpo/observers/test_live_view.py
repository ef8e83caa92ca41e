"""The live view: what it shows, that it stays within the terminal, and what drawing it costs."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from rich.text import Text

from hpo.cost.limits import Limits
from hpo.cost.prices import Tariff
from hpo.observers.live_view import FRAME_SECONDS, shortened, watcher_for
from hpo.observers.progress import Goal
from tests.support.hpo.observers.live_view import Drawn, watch
from tests.support.refusals import mentions, missing_names
from tests.support.simulated import METRIC, PLAN, rising, simulate
from tests.support.watched import Watched
from trainers.gangs.messages import Assignment


def row(frame: str, heading: str) -> str:
    """What a frame has beside a heading; nothing where it has no such line."""
    return next((line.removeprefix(heading) for line in frame.splitlines() if line.startswith(f"{heading} ")), "")


def test_brackets_fill_and_what_matters_stands_below() -> None:
    record = watch(Drawn())
    first, last = record.frames[0], record.frames[-1]
    assert row(first, "best")
    assert not re.search(r"\d", row(first, "best")), "nothing was reported yet"
    assert re.search(r"\d", row(last, "best"))
    assert "0/11" in first
    mentions(row(first, "gangs"), "4 starting")
    mentions(row(first, "left"), "gang", "starting")
    left = [row(frame, "left") for frame in record.frames]
    assert any(not missing_names(said, "measuring") for said in left)
    assert any("4 busy" in frame for frame in record.frames)
    assert "4+ 7-" in last
    mentions(row(last, "trials"), 30, "8 completed", "22 stopped")
    mentions(row(last, "units"), 334, "100%")
    assert any(re.search(r"\b\d+ (s|min)\b", said) for said in left)
    assert any(not missing_names(said, "un-tuned") for said in left)
    assert any("eta=0." in frame and "validation" in frame for frame in record.frames)
    assert any(not missing_names(row(frame, "billed"), "worker-seconds", "starting") for frame in record.frames)


def test_what_is_billed_has_its_price_where_there_is_one() -> None:
    tariff = Tariff(per_worker_hour=36.0, currency="EUR")
    record = watch(Drawn(), limits=Limits(tariff=tariff))
    [line] = [line for line in record.frames[-1].splitlines() if "worker-seconds" in line]
    seconds, cost = re.search(r"([\d,]+) worker-seconds, ([\d.]+) EUR", line).groups()  # type: ignore[union-attr]
    assert float(cost) == pytest.approx(float(seconds.replace(",", "")) / 100, abs=0.01)


def test_before_the_first_gang_is_up_that_is_what_it_says() -> None:
    record = Drawn()
    state = replace(simulate()[0].state, gangs_busy=0, gangs_idle=0, gangs_starting=1)
    starts = mentions(record.watcher.left(state), "gang", "starting")
    waits = replace(state, gangs_starting=0)
    assert missing_names(mentions(record.watcher.left(waits), "cluster"), "driver") == ["driver"]
    record.watcher.taken_over = True
    mentions(record.watcher.left(waits), "cluster", "driver")
    assert record.watcher.left(state) == starts


def test_a_terminal_without_blocks_gets_ascii() -> None:
    record = watch(Drawn(encoding="ascii"))
    record.written().encode("ascii")
    assert "###" in record.frames[-1]


def test_it_ends_with_the_brackets_alone_and_the_cursor_shown() -> None:
    written = watch(Drawn()).written()
    assert written.endswith("\x1b[?25h")
    final = written[written.rindex("\x1b[2K") :]
    assert "a-job" in final
    assert "4+ 7-" in final
    assert "left" not in final


def test_what_is_printed_stands_above_it() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == "job-003":
            print("a note of somebody's")  # noqa: T201
            raise ValueError("[/x] is no tag")
        return rising(assignment, step)

    standard = sys.stdout
    written = watch(Drawn(), curve=curve).written()
    assert sys.stdout is standard
    [failed] = [line for line in written.splitlines() if "[/x] is no tag" in line]
    mentions(re.sub(r"\x1b\[\d*[A-Z]", " ", failed), "job-003", "failed")
    assert "a note of somebody's" in written
    assert written.index("[/x] is no tag") < written.rindex("rungs")


def test_an_error_in_the_job_leaves_the_terminal_as_it_was() -> None:
    record = Drawn()
    standard = sys.stdout
    with pytest.raises(KeyboardInterrupt), record.watcher:
        raise KeyboardInterrupt
    assert sys.stdout is standard
    assert record.written().endswith("\x1b[?25h")


def test_it_is_drawn_four_times_a_second_at_most() -> None:
    record = Drawn()
    watch(record, unit_seconds=lambda assignment: 0.001)
    seconds = record.now
    assert record.written().count("rungs") <= seconds / FRAME_SECONDS + 3


def test_it_follows_a_job_that_is_watched_by_name() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    goal = Goal(job="a-job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=PLAN)
    with watcher_for(console, goal) as watcher:
        record = Watched(lambda clock: watcher)
        simulate(record=record)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert any(not missing_names(line, "bracket", 1, 4) for line in lines)


@pytest.mark.parametrize("width", range(20, 60))
def test_a_line_that_is_too_long_is_cut_between_words(width: int) -> None:
    words = "left       at most about 5 s, waiting for room on the cluster"
    cut = shortened(Text(words), width)
    assert cut.cell_len <= width
    kept = cut.plain.removesuffix(" …")
    assert words.startswith(kept)
    assert words[len(kept) : len(kept) + 1] in ("", " ")
