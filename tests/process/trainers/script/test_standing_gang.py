"""Programs of several processes that stand at their rungs: each rank's part, under the launchers that start them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from tests.support.rows import until
from tests.support.script_programs import values
from tests.support.trainers.script.standing_gang import (
    alive,
    gang,  # noqa: F401  # Fixtures.
    made,
    rungs,
    started,
)
from trainers.gangs import Assignment
from trainers.gangs.program import Program


@pytest.mark.parametrize(("launcher", "processes"), [("python", 1), ("torchrun", 2)])
def test_all_processes_of_a_program_go_on_together(
    gang: ProcessGang, tmp_path: Path, launcher: str, processes: int
) -> None:
    ranks = gang.run(lambda: made(tmp_path, launcher, processes), *rungs(tmp_path, 1, 3, 6))
    assert values(*ranks[0]) == [(step, step) for step in range(1, 7)]
    assert [segment.details for segment in ranks[0]] == [{}, {}, {"no_model": "length known"}]
    assert len(started(tmp_path)) == 2 * processes
    until(lambda: not alive(tmp_path))


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
