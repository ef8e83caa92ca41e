"""Precisions: the same network in each, scales of losses as PyTorch's own, and pauses that lose nothing."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.allreduce import program
from tests.support.networks import assignment, close, servers, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.precision import LOW, flat, near, train
from trainers.errors import DivergedError
from trainers.pytorch.state.checkpoint import TorchCheckpoint


@pytest.mark.parametrize("precision", LOW)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_parameter_servers_train_in_it_and_go_on_after_a_pause(tmp_path, precision, mode):
    words = {"per_worker_batch_size": 8, "num_workers": 2, "mode": mode, "precision": precision, "max_norm": 5.0}
    if "fp16" in precision:
        words["burst"] = 1e7
    [whole] = servers(train, assignment(tmp_path, 0, 2, "whole", **words))
    _, rest = servers(train, assignment(tmp_path, 0, 1, "parts", **words), assignment(tmp_path, 1, 2, "parts", **words))
    close(flat(state(whole)), flat(state(rest)), 0.0)
    if "fp16" in precision:
        first, second = TorchCheckpoint.read(rest.checkpoint).scales
        assert first[0] == 65536
        assert second[0] < 65536  # Its own gradients overflowed, and nobody else's.
    [plain] = servers(train, assignment(tmp_path, 0, 2, "plain", **{**words, "precision": "fp32", "burst": 0}))
    near(state(whole)["model"], state(plain)["model"], 0.1)


def test_losses_that_are_finite_at_no_scale_end_the_trial(tmp_path):
    def broken(context) -> None:
        model = context.prepare_model(nn.Linear(6, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            for features, _ in context.prepare_data("train"):
                context.step(model(features).sum() * float("nan"), optimizer)
            context.report({}, checkpoint={"model": model.state_dict()})

    [error] = serve_alone(program(broken)(), assignment(tmp_path, 0, 9, per_worker_batch_size=8, precision="fp16"))
    assert isinstance(error, DivergedError)
    mentions(str(error), "gradients", "loss scale")


def test_low_copies_go_with_their_trial(tmp_path):
    kept, left = [], []

    def looks_back(context) -> None:
        gc.collect()
        left.append(sum(ref() is not None for ref in kept))
        model = context.prepare_model(nn.Linear(6, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", labels=torch.int64):
                context.step(functional.cross_entropy(model(features), labels), optimizer)
            parts = [*model.parameters(), *context._mixed.leaves([*model.parameters()])]
            kept.extend(map(weakref.ref, parts))
            context.report({}, checkpoint={})

    words = {"per_worker_batch_size": 8, "precision": "fp16-master"}
    trials = [assignment(tmp_path, stop=1, name=str(at), **words) for at in range(3)]
    serve_alone(program(looks_back)(), *trials)
    assert len(kept) == 12
    assert left == [0, 0, 0]
