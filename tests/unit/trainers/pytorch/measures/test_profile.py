"""Profiles of a few steps: which trials have one, what it says, and that it changes no number."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from ray.train import ScalingConfig

from tests.support.allreduce import program
from tests.support.networks import assignment, run, state, train_exactly
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions, refuses_each
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.errors import ConfigurationError
from trainers.pytorch.measures import Profiling
from trainers.pytorch.measures.communication import WAITING
from trainers.pytorch.measures.step_profile import trace_of
from trainers.registry import trainer_from_json

HERE = ScalingConfig(num_workers=0)


def same(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_profile_of_one_worker_has_its_operators_and_changes_nothing(tmp_path):
    plain, seen = (
        serve_alone(
            program(train_exactly, profile=profile, profile_steps=(3, 8))(),
            assignment(tmp_path / str(profile), per_worker_batch_size=8),
        )[0]
        for profile in (False, True)
    )
    same(state(plain)["model"], state(seen)["model"])
    assert plain.details == {}
    profile = seen.details["profile"]
    assert profile["steps"] == 5
    assert profile["trace"] == str(tmp_path / "True" / "profiles" / "trial.json.gz")
    assert {"aten::addmm", "Optimizer.step#SGD.step"} <= profile["operator_seconds"].keys()
    assert 0 < max(profile["operator_seconds"].values()) < profile["step_seconds"]
    assert (profile["collectives"], profile["waiting_seconds"]) == ([], 0.0)
    with gzip.open(profile["trace"]) as file:
        names = {event.get("name") for event in json.load(file)["traceEvents"]}
    assert "aten::addmm" in names


def test_a_profile_of_simulated_servers_shows_the_waiting(tmp_path):
    trainer = ParameterServerTrainer(train_exactly, scaling=HERE, profile=["trial"], profile_steps=(1, 3))
    [segment] = run(trainer, assignment(tmp_path, num_workers=2, per_worker_batch_size=8))
    assert segment.details["profile"]["steps"] == 2
    assert segment.details["profile"]["collectives"] == [WAITING]


def test_a_trial_with_too_few_steps_is_said_not_to_be_profiled(tmp_path, caplog):
    made = program(train_exactly, profile=True, profile_steps=(1000, 1010))()
    [segment] = serve_alone(made, assignment(tmp_path, per_worker_batch_size=8))
    assert segment.details == {}
    mentions("\n".join(caplog.messages), "trial", "24", "profile_steps", "1000")


def test_only_the_first_assignment_of_a_trial_is_profiled(tmp_path):
    profiling = Profiling.of(True, (10, 20))
    begun, later = assignment(tmp_path, name="job-003"), assignment(tmp_path, start=1, name="job-003")
    forked = replace(later, trial_id="job-009")
    assert [profiling.covers(each) for each in (begun, later, forked)] == [True, False, True]


@pytest.mark.parametrize(
    ("profile", "covered"),
    [
        (True, True),
        (3, True),
        ("job-003", True),
        ([1, "job-003"], True),
        (30, False),
        ([0], False),
        (["other-003"], False),
    ],
)
def test_trials_are_named_by_number_or_name(tmp_path, profile, covered):
    assert Profiling.of(profile, (10, 20)).covers(assignment(tmp_path, name="job-003")) is covered


def test_no_trial_is_profiled_unless_asked_for():
    assert Profiling.of(False, (10, 20)) is None


def test_trials_that_are_none_are_refused():
    wrong = ([], "", None, 1.5, -1, [True], [None], {"trial": 1})
    made = partial(TorchTrainer, train_exactly, scaling=HERE)
    refuses_each([(partial(made, profile=it), ("profile", repr(it), "True", "7")) for it in wrong], ConfigurationError)


def test_steps_that_are_none_are_refused():
    wrong = ((20, 10), (5, 5), (-1, 3), "10", 10, (1, 2, 3), (True, 2), (1.0, 2), None)
    made = partial(TorchTrainer, train_exactly, scaling=HERE, profile=True)
    cases = [(partial(made, profile_steps=steps), ("profile_steps", repr(steps), "(10, 20)")) for steps in wrong]
    refuses_each(cases, ConfigurationError)


@pytest.mark.parametrize("profile", [True, 0, [0, "job-001"], False])
@pytest.mark.parametrize("kind", [TorchTrainer, ParameterServerTrainer])
def test_what_is_profiled_is_recorded(kind, profile):
    trainer = kind(train_exactly, scaling=HERE, profile=profile, profile_steps=(1, 2))
    recorded = json.loads(json.dumps(trainer.to_json()))
    assert trainer_from_json(recorded, allow_code=True).profiling == trainer.profiling
    assert trainer.with_hyperparameters({"lr": 0.1}).profiling == trainer.profiling
    assert "profile" not in TorchTrainer(train_exactly, scaling=HERE).to_json()["options"]


def test_a_trace_stands_in_its_job_s_folder():
    assert trace_of("/jobs/a/a-001/000009.pt") == "/jobs/a/profiles/a-001.json.gz"
    assert trace_of("s3://bucket/a/a-001/9.pt?region=x") == "s3://bucket/a/profiles/a-001.json.gz?region=x"
