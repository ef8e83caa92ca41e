"""Profiles of a few steps: which trials have one, what it says, and that it changes no number."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.support.allreduce import program
from tests.support.networks import assignment, network, train_exactly
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions


def fails_within(context) -> None:
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for features, labels in context.prepare_data("train", labels=torch.int64):
        context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
    raise ValueError("on the way")


def test_a_trial_that_fails_within_its_profile_leaves_none_running(tmp_path):
    made = program(fails_within, profile=True, profile_steps=(0, 100))()
    given = assignment(tmp_path, per_worker_batch_size=8)
    assert all("on the way" in str(error) for error in serve_alone(made, given, given))
    [after] = serve_alone(program(train_exactly, profile=True, profile_steps=(0, 100))(), given)
    assert after.details["profile"]["steps"] == 24


def profiles_itself(context) -> None:
    with torch.profiler.profile(acc_events=True):
        train_exactly(context)


def test_a_profiler_of_the_function_s_own_goes_first(tmp_path, caplog):
    made = program(profiles_itself, profile=True, profile_steps=(2, 4))()
    [segment] = serve_alone(made, assignment(tmp_path, per_worker_batch_size=8))
    assert segment.details == {}
    mentions("\n".join(caplog.messages), "profiler")
