"""Profiles of a few steps: which trials have one, what it says, and that it changes no number."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.support.allreduce import program
from tests.support.networks import assignment, state, train_exactly
from tests.support.process_gang import process_gang
from trainers.pytorch.measures.communication import WAITING


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def same(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_profile_of_a_gang_shows_its_communication_on_rank_0(gang, tmp_path):
    given = assignment(tmp_path, name="job-007", per_worker_batch_size=8)
    other = replace(given, trial_id="job-008", save_to=str(tmp_path / "job-008" / "2.pt"))
    make = program(train_exactly, profile=7, profile_steps=(2, 6))
    (first, unseen), _ = gang.run(make, given, other)
    profile, whole = first.details["profile"], first.details["communication"]
    assert profile["steps"] == 4
    assert 0 < profile["waiting_seconds"] < profile["step_seconds"] < whole["step_seconds"]["0"]
    assert {"c10d::allreduce_", WAITING} <= {*profile["collectives"]}
    assert "profile" not in unseen.details
    same(state(first)["model"], state(unseen)["model"])
