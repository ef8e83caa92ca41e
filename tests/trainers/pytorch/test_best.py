"""The model of a trial whose job compares trials by their best value is that of its best report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.support.networks import HERE, assignment, data, network, run, servers, state
from tests.support.process_gang import process_gang
from tests.support.refusals import refuses
from trainers import TorchTrainer, TrialError
from trainers.channels import Channel
from trainers.gangs.messages import Assignment
from trainers.pytorch.state.checkpoint import TorchCheckpoint


def train(context) -> None:
    """Reports `values`, an epoch each; what is in the checkpoint tells of the epoch."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    batches = context.prepare_data("train", labels=torch.int64)
    for epoch in context.epochs():
        for features, labels in batches:
            context.step(functional.cross_entropy(model(features.double()), labels), optimizer)
        kept = {"model": model.state_dict(), "nested": [torch.tensor(epoch)]}
        context.report(
            {"train:value": words["values"][epoch]},
            checkpoint=None if epoch in words.get("without", ()) else kept,
            final=context.rank == 0 and epoch == words.get("ends"),
        )


VALUES = [3.0, 7.0, 1.0, 5.0, 7.0, 2.0]


def by_best(one: Assignment, mode: str = "max") -> Assignment:
    return replace(one, objective="train:value", mode=mode, by_best=True)


def words(workers: int = 0, **others: Any) -> dict[str, Any]:
    return {"per_worker_batch_size": 8, "values": VALUES, **({"num_workers": workers} if workers else {}), **others}


def in_one_process(*assignments) -> list:
    return run(TorchTrainer(train, scaling=HERE), *assignments)


def on_servers(*assignments) -> list:
    return servers(train, *assignments)


def handed_out(segment) -> dict[str, Any]:
    state(segment)  # Raises where it is an error.
    return TorchTrainer(train, scaling=HERE).load_model(segment.checkpoint)


@pytest.mark.parametrize("serve", [in_one_process, on_servers])
@pytest.mark.parametrize(("mode", "best"), [("max", 1), ("min", 2)])
@pytest.mark.parametrize("pauses", [(), (1,), (2, 4)])
def test_the_best_epoch_s_state_is_handed_out_whatever_the_pauses(tmp_path, serve, mode, best, pauses) -> None:
    told = words(3 if serve is on_servers else 0)
    ends = [*pauses, len(VALUES)]
    parts = [
        by_best(assignment(tmp_path, start=start, stop=stop, **told), mode)
        for start, stop in zip([0, *pauses], ends, strict=True)
    ]
    segment = serve(*parts)[-1]
    model = handed_out(segment)
    assert int(model["nested"][0]) == best
    [alone] = serve(assignment(tmp_path, name="short", stop=best + 1, **told))
    assert str(model["model"]) == str(state(alone)["model"])
    assert int(state(segment)["nested"][0]) == len(VALUES) - 1  # It goes on from its last.


def test_a_trial_that_ends_itself_hands_out_its_best_too(tmp_path) -> None:
    first = by_best(assignment(tmp_path, stop=4, **words(ends=2)))
    second = by_best(assignment(tmp_path, start=4, stop=6, **words(ends=2)))
    for segment in in_one_process(first, second):
        assert int(handed_out(segment)["nested"][0]) == 1


def test_without_a_checkpoint_in_each_report_the_remedy_is_said(tmp_path) -> None:
    with refuses(
        TrialError, field=("epoch 1", "checkpoint", "objective_value"), value="best", remedy=("report", "last")
    ):
        in_one_process(by_best(assignment(tmp_path, stop=3, **words(without=[1]))))


def test_where_the_last_value_counts_nothing_more_is_kept(tmp_path) -> None:
    [segment] = in_one_process(assignment(tmp_path, stop=3, **words(without=[1])))
    assert TorchCheckpoint.read(segment.checkpoint).best == {}
    assert int(handed_out(segment)["nested"][0]) == 2


@pytest.mark.process
def test_on_several_workers_the_first_keeps_it(tmp_path) -> None:
    def make():
        channels = {"train": Channel.of(data(), name="train").place(0)}
        return TorchTrainer(train, scaling=HERE, report_timeout_s=60.0).program(channels)

    with process_gang(2, str(tmp_path)) as gang:
        gang.run(make, by_best(assignment(tmp_path, stop=3, **words())))
        [[segment], _] = gang.run(make, by_best(assignment(tmp_path, start=3, stop=6, **words())))
    assert int(handed_out(segment)["nested"][0]) == 1
