"""Programs of several processes that stand at their rungs: each rank's part, under the launchers that start them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.process_gang import ProcessGang, process_gang
from tests.support.refusals import mentions
from tests.support.rows import until
from tests.support.script_programs import ACCURACY, PROGRAMS, assignment, values
from trainers import ScalingConfig, ScriptTrainer
from trainers.gangs import Assignment
from trainers.gangs.program import Program

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def gang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGang]:
    """Two workers without Ray."""
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def made(folder: Path, launcher: str, processes: int) -> Program:
    """The program of two workers."""
    trainer = ScriptTrainer(
        "rounds.py",
        source_dir=PROGRAMS,
        launcher=launcher,
        scaling=ScalingConfig(num_workers=2),
        metric_definitions=[ACCURACY],
        processes_per_worker=processes,
        environment={"STARTS": str(folder / "starts")},
        report_timeout_s=60,
        grace_period_s=5,
    )
    return trainer.program({})


def rungs(folder: Path, *stops: int) -> list[Assignment]:
    """A trial that goes on at once from each of these units but the last."""
    found: list[Assignment] = []
    for stop in stops:
        given = replace(assignment(folder, stop, epochs=stops[-1]), goes_on=stop < stops[-1])
        if found:
            given = replace(given, start=found[-1].stop, checkpoint=found[-1].save_to)
        found.append(given)
    return found


def started(folder: Path) -> list[int]:
    """Process ids of all starts."""
    return [int(line) for line in (folder / "starts").read_text().split()]


def alive(folder: Path) -> list[int]:
    """Those that are not over."""
    return [
        pid
        for pid in started(folder)
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.parametrize(("launcher", "processes"), [("python", 1), ("torchrun", 2)])
def test_all_processes_of_a_program_go_on_together(
    gang: ProcessGang, tmp_path: Path, launcher: str, processes: int
) -> None:
    ranks = gang.run(lambda: made(tmp_path, launcher, processes), *rungs(tmp_path, 1, 3, 6))
    assert values(*ranks[0]) == [(step, step) for step in range(1, 7)]
    assert [segment.details for segment in ranks[0]] == [{}, {}, {}]
    assert len(started(tmp_path)) == 2 * processes
    until(lambda: not alive(tmp_path))


@pytest.mark.long
def test_another_trial_ends_all_of_them_and_a_gang_that_is_lost_costs_the_units_again(
    gang: ProcessGang, tmp_path: Path
) -> None:
    first, second, last = rungs(tmp_path, 1, 3, 5)
    other = replace(first, trial_id="other", save_to=str(tmp_path / "job" / "other" / "000001"))
    ranks = gang.run(lambda: made(tmp_path, "torchrun", 1), first, other)
    assert values(*ranks[0]) == [(1, 1.0), (1, 1.0)]
    assert len(started(tmp_path)) == 4
    until(lambda: not alive(tmp_path))
    ranks = gang.run(lambda: made(tmp_path, "torchrun", 1), second, last)
    assert values(*ranks[0]) == [(step, step) for step in range(2, 6)]
    assert ranks[0][0].details["units_trained_again"] >= 1
    assert ranks[0][1].details == {}
    assert len(started(tmp_path)) == 6


def test_a_part_that_is_killed_where_it_stands_fails_its_trial_alone(gang: ProcessGang, tmp_path: Path) -> None:
    """Rank 1's ends, as where memory ends; the gang serves on."""
    first, second = rungs(tmp_path, 1, 3)
    again = [replace(each, trial_id="again", save_to=each.save_to + "-again") for each in rungs(tmp_path, 1, 3)]
    again[1] = replace(again[1], checkpoint=again[0].save_to)
    ranks = gang.run(lambda: Killing(made(tmp_path, "python", 1), tmp_path), first, second, *again)
    mentions(str(ranks[0][1]), "worker 1", "SIGKILL")
    assert values(ranks[0][2], ranks[0][3]) == [(1, 1.0), (2, 2.0), (3, 3.0)]
    until(lambda: not alive(tmp_path))


class Killing:
    """A program whose part on rank 1 is killed once, behind the first assignment."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program, self._folder, self._served = program, folder, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._program, name)

    def train(self, assignment: Assignment, on_report, halted):
        """Serves as the program does."""
        self._served += 1
        if self._served == 2:
            for child in psutil.Process().children():
                if "rounds.py" in " ".join(child.cmdline()) and child.environ()["RANK"] == "1":
                    child.kill()
        return self._program.train(assignment, on_report, halted)
