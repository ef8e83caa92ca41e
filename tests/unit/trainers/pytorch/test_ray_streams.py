"""Streams of Ray Datasets without Ray: what a pass is, how it goes on, and how one that breaks off is told."""

from __future__ import annotations

import pytest

from tests.support.networks import assignment, close, state
from tests.support.process_gang import serve_alone
from tests.support.trainers.pytorch.ray_streams import ROWS, Split, collects, program


@pytest.mark.parametrize("steps", [1, 2])
def test_a_pause_in_the_middle_of_a_pass_changes_no_bit(tmp_path, steps):
    words = {"per_worker_batch_size": 4, "gradient_accumulation_steps": steps, "steps": True}
    [whole] = serve_alone(program(collects, Split(), steps_per_report=2), assignment(tmp_path, 0, 6, "whole", **words))
    parts = [assignment(tmp_path, at, at + 1, "parts", **words) for at in range(6)]
    form = Split()
    *_, part = serve_alone(program(collects, form, steps_per_report=2), *parts)
    assert state(whole)["came"] == state(part)["came"]
    close(state(whole)["model"], state(part)["model"], 0.0)
    rows = [row for batch in state(whole)["came"] for row in batch]
    assert sorted(rows[:ROWS]) == [*range(ROWS)]
    assert rows[:ROWS] != rows[ROWS : 2 * ROWS]
    assert len(form.made) > 1  # A pass that was left is let go of.


def test_trials_that_read_to_the_end_share_one_split(tmp_path):
    form = Split()
    trials = [assignment(tmp_path, name=name, per_worker_batch_size=4) for name in "abc"]
    first, *_, last = serve_alone(program(collects, form), *trials)
    assert len(form.made) == 1
    assert form.made[0].passes == 6
    assert state(first)["came"] == state(last)["came"]
