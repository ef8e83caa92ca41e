"""Programs of several processes that stand at their rungs: each rank's part, under the launchers that start them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.process_gang import ProcessGang
from tests.support.rows import until
from tests.support.script_programs import values
from tests.support.trainers.script.standing_gang import (
    alive,
    gang,  # noqa: F401  # Fixtures.
    made,
    rungs,
    started,
)


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
    assert ranks[0][1].details.keys() <= {"no_model"}
    assert len(started(tmp_path)) == 6
