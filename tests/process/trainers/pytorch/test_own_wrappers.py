"""A function's own DistributedDataParallel or FSDP2, with plain backward passes and steps, trial after trial."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from tests.support.allreduce import program
from tests.support.networks import assignment, close, state
from tests.support.process_gang import ProcessGang, process_gang, serve_alone
from tests.support.refusals import mentions
from tests.support.trainers.pytorch.own_wrappers import keeps_one, network
from trainers.errors import TrialError

WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def replicated(context) -> None:
    """As a script for torchrun has it; the wrapper's own gradients, Adam, and a checkpoint of what it wraps."""
    model = DistributedDataParallel(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if context.checkpoint is not None:
        model.module.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    batches = context.prepare_data("train", labels=torch.int64, shuffle=False)
    for _ in context.epochs():
        for features, labels in batches:
            optimizer.zero_grad()
            functional.cross_entropy(model(features.double()), labels).backward()
            optimizer.step()
        found = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({}, checkpoint=found)


def sharded(context) -> None:
    model = network()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if context.checkpoint is not None:
        whole = StateDictOptions(full_state_dict=True)
        set_model_state_dict(model, context.checkpoint["model"], options=whole)
        set_optimizer_state_dict(model, optimizer, context.checkpoint["optimizer"], options=whole)
    batches = context.prepare_data("train", labels=torch.int64, shuffle=False)
    for _ in context.epochs():
        for features, labels in batches:
            optimizer.zero_grad()
            functional.cross_entropy(model(features.double()), labels).backward()
            optimizer.step()
        found = {
            "model": get_model_state_dict(model, options=WHOLE),
            "optimizer": get_optimizer_state_dict(model, optimizer, options=WHOLE),
        }
        context.report({}, checkpoint=found)


def by_the_context(context) -> None:
    model = context.prepare_model(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64, shuffle=False):
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


@pytest.mark.parametrize("function", [replicated, sharded])
def test_it_trains_as_the_context_does_for_trial_after_trial(pair: ProcessGang, tmp_path, function):
    words = {"per_worker_batch_size": 8}
    trials = [assignment(tmp_path, 0, 2, name, **words) for name in ("first", "second")]
    [[first, second], *_] = pair.run(program(function, 96), *trials)
    [[rest], *_] = pair.run(program(function, 96), assignment(tmp_path, 2, 4, "first", **words))
    [[whole], *_] = pair.run(program(function, 96), assignment(tmp_path, 0, 4, "whole", **words))
    close(dict(state(first)["model"]), dict(state(second)["model"]), 0.0)
    close(dict(state(rest)["model"]), dict(state(whole)["model"]), 0.0)
    [expected] = serve_alone(program(by_the_context, 96)(), assignment(tmp_path, 0, 4, per_worker_batch_size=16))
    close(dict(state(whole)["model"]), dict(state(expected)["model"]), 1e-9)


def wraps_a_part(context) -> None:
    """A head that no wrapper knows of would drift apart from the other workers'."""
    model, head = DistributedDataParallel(network()), nn.Linear(2, 2).double()
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            functional.cross_entropy(head(model(features.double())), labels).backward()
            optimizer.step()


def test_parameters_outside_of_the_wrapper_are_refused(pair: ProcessGang, tmp_path):
    [[error], *_] = pair.run(program(wraps_a_part), assignment(tmp_path, per_worker_batch_size=8))
    assert isinstance(error, TrialError)
    mentions(str(error), "SGD.step()", "context.step(loss, optimizer)")


def test_a_plain_model_is_refused_behind_a_trial_with_a_wrapper(pair: ProcessGang, tmp_path):
    def either(context) -> None:
        (replicated if context.hyperparameters["wrapped"] else keeps_one)(context)

    words = {"per_worker_batch_size": 8}
    trials = [assignment(tmp_path, name=str(wrapped), **words, wrapped=wrapped) for wrapped in (True, False)]
    [[_, error], *_] = pair.run(program(either), *trials)
    assert isinstance(error, TrialError)
    mentions(str(error), "SGD.step()", "context.step(loss, optimizer)")
