"""Lines that `hpo check` prints of its findings."""

from __future__ import annotations

from hpo.cli.views import trial_check_lines
from hpo.jobs import TrialCheck
from hpo.jobs.trial_check import Unit


def test_units_that_a_jump_of_the_step_filled_are_one_line() -> None:
    values = [(1, 4.1, False), *((number, 3.5, False) for number in range(2, 102)), (102, 3.5, True), (103, 3.0, True)]
    units = tuple(Unit(number=number, metrics={"acc": acc}, restarted=again) for number, acc, again in values)
    found = TrialCheck(hyperparameters={}, command="", workers=0, length=400, units=units)
    lines = [line for line in trial_check_lines(found) if line.startswith("unit")]
    assert [line.split()[:2] for line in lines] == [["unit", "1"], ["units", "2"], ["unit", "102"], ["unit", "103"]]
    assert lines[1].split()[2:] == ["to", "101:", "acc=3.50000"]
