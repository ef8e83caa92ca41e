"""XGBoost halted between two rungs: all workers at one round, and what goes on from there to the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.process_gang import ProcessGang
from tests.support.trainers.xgboost.halting import assignment, program
from trainers import storage


def look_each_round() -> None:
    from trainers.xgboost.rounds import halting as xgboost_halting

    xgboost_halting.LOOK_SECONDS = 0.0


def test_all_workers_halt_at_one_round(gang: ProcessGang, tmp_path: Path) -> None:
    straight, halted = assignment(tmp_path / "straight"), assignment(tmp_path / "halted", halt_at=8)
    answers = gang.run(program, straight, halted, before=look_each_round)
    whole, short = answers[0]
    assert [segment.reached for _, segment in answers] == [7, 7, 7]
    assert short.reports == whole.reports[:7]
    later = replace(assignment(tmp_path / "halted"), start=7, checkpoint=short.checkpoint)
    [rest] = gang.run(program, later, before=look_each_round)[0]
    assert storage.read(rest.checkpoint) == storage.read(whole.checkpoint)
