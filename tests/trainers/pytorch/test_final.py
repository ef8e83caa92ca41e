"""A trial that ends itself: its last report stands for the epochs that are left, and nothing is run for them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.networks import HERE, assignment, data, network, run, servers, state
from tests.support.process_gang import process_gang
from tests.support.refusals import refuses
from trainers import TorchTrainer, TrialError
from trainers.channels import Channel
from trainers.gangs.messages import Segment


def train(context) -> None:
    """Ends the trial after the epoch `ends`; other ranks than the first learn of that from it."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    for epoch in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        context.report(
            {"train:epoch": epoch},
            checkpoint={"model": model.state_dict(), "epoch": epoch},
            final=context.rank == 0 and epoch == words["ends"],
        )


def steps(segment: Segment) -> list[tuple[int, float]]:
    return [(report.step, report.metrics["train:epoch"]) for report in segment.reports]


WORDS = {"per_worker_batch_size": 8}


def in_one_process(*assignments) -> list:
    return run(TorchTrainer(train, scaling=HERE), *assignments)


def on_servers(*assignments) -> list:
    return servers(train, *assignments)


@pytest.mark.parametrize("serve", [in_one_process, on_servers])
@pytest.mark.parametrize("ends", [0, 2, 4])
def test_its_last_report_stands_for_the_epochs_that_are_left(tmp_path, serve, ends):
    words = {**WORDS, "ends": ends, **({"num_workers": 3} if serve is on_servers else {})}
    first, second = serve(assignment(tmp_path, stop=5, **words), assignment(tmp_path, start=5, stop=7, **words))
    assert steps(first) == [(epoch + 1, min(epoch, ends)) for epoch in range(5)]
    assert steps(second) == [(6, ends), (7, ends)]
    assert state(first)["epoch"] == state(second)["epoch"] == ends
    [short] = serve(assignment(tmp_path, name="short", stop=ends + 1, **words))
    for segment in (first, second):
        assert str(state(segment)["model"]) == str(state(short)["model"])


@pytest.mark.process
def test_all_workers_end_when_the_first_says_so(tmp_path):
    def make():
        channels = {"train": Channel.of(data(), name="train").place(0)}
        return TorchTrainer(train, scaling=HERE, report_timeout_s=60.0).program(channels)

    words = {**WORDS, "ends": 1}
    with process_gang(2, str(tmp_path)) as gang:
        # One after the other, as a driver gives them: the second is from what the first has written.
        first = gang.run(make, assignment(tmp_path, stop=4, **words))
        second = gang.run(make, assignment(tmp_path, start=4, stop=6, **words))
    for [segment] in first:
        assert steps(segment) == [(1, 0), (2, 1), (3, 1), (4, 1)]
    for [segment] in second:
        assert steps(segment) == [(5, 1), (6, 1)]
    assert state(second[0][0])["epoch"] == 1


def test_a_loop_that_is_left_without_saying_so_is_told_how(tmp_path):
    def function(context) -> None:
        for epoch in context.epochs():
            context.report({}, checkpoint={"model": nn.Linear(1, 1).state_dict()})
            if epoch == 1:
                break

    with refuses(TrialError, field="5", value=2, remedy=("context.epochs()", "report()", "final=True")):
        run(TorchTrainer(function, scaling=HERE), assignment(tmp_path, stop=5, **WORDS))
