"""Precisions: the same network in each, scales of losses as PyTorch's own, and pauses that lose nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.allreduce import only, only_errors, program
from tests.support.networks import assignment, close, small_buckets, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.precision import LOW, flat, train
from trainers.pytorch.state.checkpoint import TorchCheckpoint


@pytest.mark.parametrize("precision", LOW)
def test_workers_agree_and_a_pause_loses_no_bit(gang: ProcessGang, tmp_path, precision):
    """With an overflow on one worker alone in each epoch, whose update no worker makes."""
    words = {"per_worker_batch_size": 4, "precision": precision, "leave": str(tmp_path)}
    if "fp16" in precision:
        words["burst"] = 1e6

    def served(*trials):
        return only_all(gang.run(program(train), *trials, before=small_buckets))[0]

    whole, _ = served(assignment(tmp_path, 0, 3, "whole", **words), assignment(tmp_path, 0, 1, "parts", **words))
    [rest] = served(assignment(tmp_path, 1, 3, "parts", **words))
    close(flat(state(whole)), flat(state(rest)), 0.0)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    for other in ranks[1:]:
        for name in ("0.weight", "4.bias"):
            assert torch.equal(ranks[0][name], other[name])
    scales = TorchCheckpoint.read(rest.checkpoint).scales
    assert len(set(scales)) == (1 if "fp16" in precision else 0)
    if scales:
        assert scales[0][0] < 65536
        assert scales == TorchCheckpoint.read(whole.checkpoint).scales
        # Three skipped updates are none of Adam's.
        assert state(whole)["optimizer"]["state"][0]["step"] == whole_updates(whole) - 3


def whole_updates(segment) -> int:
    return TorchCheckpoint.read(segment.checkpoint).updates


def only_all(answers: list) -> list:
    for answer in answers:
        for one in answer:
            if isinstance(one, Exception):
                raise one
    return answers


@pytest.mark.parametrize("precision", LOW)
def test_workers_together_come_near_one_worker_with_their_batch(gang: ProcessGang, tmp_path, precision):
    def exactly(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
        for _ in context.epochs():
            for features, labels in batches:
                context.step(functional.cross_entropy(model(features), labels), optimizer, max_norm=0.5)
            context.report({}, checkpoint={"model": model.state_dict()})

    words = {"global_batch_size": 24, "precision": precision}
    parts = {**words, "gradient_accumulation_steps": 2}
    three, accumulated = only_all(
        gang.run(program(exactly), assignment(tmp_path, **words), assignment(tmp_path, name="parts", **parts))
    )[0]
    [one] = serve_alone(program(exactly)(), assignment(tmp_path, name="one", **words))
    close(state(three)["model"], state(one)["model"], 0.01)
    close(state(accumulated)["model"], state(one)["model"], 0.01)


def penalised(context) -> None:
    model = context.prepare_model(nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features), labels) + model.weight.square().sum(), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


def test_a_penalty_on_parameters_is_refused_where_gradients_are_low(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8}
    errors = only_errors(gang.run(program(penalised), assignment(tmp_path, **words, precision="bf16-master")))
    mentions(str(errors[0]), "precision", "bf16-master", "penalty", "parameters", "optimizer.zero_grad()", "bf16")
    only(gang.run(program(penalised), assignment(tmp_path, **words, precision="bf16")))
