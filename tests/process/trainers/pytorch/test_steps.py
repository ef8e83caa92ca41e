"""Updates as units of resource: reports every few of them, over the ends of passes and through pauses."""

from __future__ import annotations

import pytest

from tests.support.allreduce import only, only_errors, program
from tests.support.networks import assignment, close, state
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.steps import train


@pytest.mark.parametrize("accumulation", [1, 3])
def test_a_pause_in_the_middle_of_a_pass_changes_no_bit(gang: ProcessGang, tmp_path, accumulation):
    """Nine batches a pass on each of three workers, of which the last is smaller: five updates are not a pass."""
    words = {"per_worker_batch_size": 4, "gradient_accumulation_steps": accumulation}
    made = program(train, 101, steps_per_report=5)
    [[whole], *_] = gang.run(made, assignment(tmp_path, 0, 7, "whole", **words))
    for start, stop in ((0, 1), (1, 4), (4, 7)):
        [[parts], *_] = gang.run(made, assignment(tmp_path, start, stop, "parts", **words))
    one, other = state(whole), state(parts)
    close(one["model"], other["model"], 0.0)
    assert one["rates"] == other["rates"]
    assert one["scheduler"]["last_epoch"] == 35
    assert whole.reports[-1] == parts.reports[-1]
    assert [report.step for report in whole.reports] == [*range(1, 8)]


def forgets(context) -> None:
    batches = context.prepare_data("train")
    for _ in context.epochs():
        for _ in context.steps(batches):
            pass


@pytest.mark.parametrize(("steps", "unit"), [(1, "step"), (2, "unit")])
def test_a_unit_without_a_report_is_told_in_its_word(gang: ProcessGang, tmp_path, steps, unit):
    made = program(forgets, steps_per_report=steps)
    errors = only_errors(gang.run(made, assignment(tmp_path, per_worker_batch_size=8)))
    mentions(str(errors[0]), f"{unit} 0", unit, "report()", "rank 0")
    only([[1]])
