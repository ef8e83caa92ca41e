"""The live view: what it shows, that it stays within the terminal, and what drawing it costs."""

from __future__ import annotations

import io
import re
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from hpo.cost.limits import Limits
from hpo.cost.prices import Tariff
from hpo.observers.live_view import FRAME_SECONDS, LiveProgress, watcher_for
from hpo.observers.progress import Goal
from hpo.strategies.hyperband import Plan, lay_out
from tests.support.refusals import mentions, missing_names
from tests.support.simulated import METRIC, PLAN, rising, simulate
from tests.support.watched import Watched
from trainers.gangs.messages import Assignment


class Drawn(Watched):
    """Keeps every frame, and what drawing cost."""

    def __init__(self, plan: Plan = PLAN, width: int = 80, height: int = 24, encoding: str = "utf-8") -> None:
        self.file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
        environment = {"TERM": "xterm-256color"}
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, highlight=False, _environ=environment
        )
        goal = Goal(job="a-job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=plan)
        super().__init__(lambda clock: LiveProgress(goal, self.console, clock))
        self.frames: list[str] = []
        self.went_round = 0
        self.every = 1 if plan.trials <= 30 else 20

    def progress(self, state: Any) -> None:
        super().progress(state)
        assert isinstance(self.watcher, LiveProgress)
        self.went_round += 1
        if self.went_round % self.every == 0 or state.untuned:
            self.frames.append(self.watcher.view(state).plain)

    def written(self) -> str:
        buffer = self.file.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def watch(record: Drawn, **options: Any) -> Drawn:
    with record.watcher:
        simulate(record=record, plan=record.watcher.goal.plan, **options)
    return record


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


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 24), (40, 10), (200, 60), (80, 5), (20, 3)])
@pytest.mark.parametrize("plan", [PLAN, lay_out(150, 1, 243)], ids=["30 trials", "150 trials"])
def test_it_stays_within_the_terminal(plan: Plan, width: int, height: int) -> None:
    record = watch(Drawn(plan, width, height))
    for frame in record.frames:
        assert len(frame.splitlines()) < height
        assert max(len(line) for line in frame.splitlines()) < max(width, 21)


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


def test_drawing_does_not_look_at_all_trials() -> None:
    """Processor seconds of a frame, of 30 trials and of 3,000 with as many lines: no more than a few times as much."""

    def cost(trials: int) -> float:
        record = Drawn(lay_out(trials, 1, 30), height=12)
        watcher = record.watcher
        record.progress = lambda state: None  # type: ignore[method-assign]
        controller, _, _ = simulate(record=record, plan=watcher.goal.plan)
        assert isinstance(watcher, LiveProgress)
        times = []
        for _ in range(5):
            started = time.process_time()
            for _ in range(10):
                watcher.view(controller.state)
            times.append(time.process_time() - started)
        return min(times)

    assert cost(3000) < 5 * cost(30)


def test_it_follows_a_job_that_is_watched_by_name() -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    goal = Goal(job="a-job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=PLAN)
    with watcher_for(console, goal) as watcher:
        record = Watched(lambda clock: watcher)
        simulate(record=record)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert any(not missing_names(line, "bracket", 1, 4) for line in lines)
