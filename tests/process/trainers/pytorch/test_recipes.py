"""Schedules of the learning rate and averages of weights: with pauses in a pass, the bits of a trial without any."""

from __future__ import annotations

from tests.support.allreduce import program
from tests.support.networks import assignment, state
from tests.support.process_gang import ProcessGang
from tests.support.trainers.pytorch.recipes import alike, train


def test_a_gang_goes_on_exactly(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 4, "schedule": "one cycle", "precision": "bf16"}
    made = program(train, 96, steps_per_report=5)
    [[whole], *_] = gang.run(made, assignment(tmp_path, 0, 8, "whole", **words))
    for start, stop in ((0, 3), (3, 8)):
        [[parts], *_] = gang.run(made, assignment(tmp_path, start, stop, "parts", **words))
    assert alike(state(whole), state(parts))
