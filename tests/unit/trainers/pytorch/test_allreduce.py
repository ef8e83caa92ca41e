"""What workers compute together, in processes without Ray; the mathematics in float64."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from tests.support.allreduce import alone, program
from tests.support.networks import assignment, close, data, network, state, train_exactly
from tests.support.process_gang import serve_alone
from trainers.pytorch.gradients import allreduce


def test_one_worker_is_plain_pytorch(tmp_path):
    [one] = alone(train_exactly, 97, assignment(tmp_path, per_worker_batch_size=12))
    torch.manual_seed(11)
    model, (features, labels) = network(), data(97)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(2):
        for start in range(0, 97, 12):
            optimizer.zero_grad()
            rows = torch.from_numpy(features[start : start + 12]).double()
            target = torch.from_numpy(labels[start : start + 12]).long()
            functional.cross_entropy(model(rows), target).backward()
            optimizer.step()
    close(state(one)["model"], model.state_dict(), 0.0)


def test_mixed_precision_and_compilation_train_the_same_network(tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        output = None
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
                output = model(features)
                context.step(functional.cross_entropy(output, labels), optimizer)
            context.report({}, checkpoint={"model": model.state_dict(), "dtype": str(output.dtype)})

    whole, half = (
        state(serve_alone(program(train, precision=precision)(), assignment(tmp_path, per_worker_batch_size=8))[0])
        for precision in ("fp32", "bf16")
    )
    assert half["dtype"] == "torch.float32"
    close(whole["model"], half["model"], 0.02)
    assert any(not torch.equal(whole["model"][name], half["model"][name]) for name in whole["model"])


def train_by_parts_of_a_pass(context) -> None:
    """Reports every third batch: a unit of resource that ends in the middle of a pass."""
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    batches = context.prepare_data("train", labels=torch.int64)
    stream = iter(())
    for _ in context.epochs():
        for _ in range(3):
            batch = next(stream, None)
            if batch is None:
                stream = iter(batches)
                batch = next(stream)
            context.step(functional.cross_entropy(model(batch[0].double()), batch[1]), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


def test_a_pass_goes_on_where_it_was_left(tmp_path):
    words = {"per_worker_batch_size": 8}
    straight, first, second = alone(
        train_by_parts_of_a_pass,
        97,
        assignment(tmp_path, stop=7, name="straight", **words),
        assignment(tmp_path, stop=3, name="paused", **words),
        assignment(tmp_path, start=3, stop=7, name="paused", **words),
    )
    del first
    close(state(straight)["model"], state(second)["model"], 0.0)


def test_a_network_of_some_megabytes_sends_its_last_layers_while_the_first_are_computed():
    """As `DistributedDataParallel`: a first bucket of a megabyte, and what fills it goes along."""
    sizes = [3_000_000, 4_000_000, 100_000, 400_000, 1000]  # Of 4 bytes each; the last come first.
    parameters = [nn.Parameter(torch.empty(size, device="meta")) for size in sizes]
    buckets = [[parameter.numel() for parameter in bucket.parameters] for bucket in allreduce._bucketed(parameters)]
    assert buckets == [[1000, 400_000], [100_000, 4_000_000, 3_000_000]]
