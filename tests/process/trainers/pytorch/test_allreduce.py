"""What workers compute together, in processes without Ray; the mathematics in float64."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.support.allreduce import alone, only, program, train_with_everything
from tests.support.networks import assignment, close, network, small_buckets, state, train_exactly
from tests.support.process_gang import ProcessGang, process_gang
from trainers.pytorch.state.checkpoint import TorchCheckpoint


@pytest.mark.parametrize("rows", [96, 97, 101, 10])
def test_workers_together_are_one_worker_with_the_whole_batch(gang: ProcessGang, tmp_path, rows):
    [first, *_] = only(gang.run(program(train_exactly, rows), assignment(tmp_path, per_worker_batch_size=4)))
    [one] = alone(train_exactly, rows, assignment(tmp_path, name="one", per_worker_batch_size=12))
    close(state(first)["model"], state(one)["model"])


@pytest.mark.parametrize("rows", [96, 101])
def test_accumulation_is_a_larger_batch(gang: ProcessGang, tmp_path, rows):
    words = {"global_batch_size": 24, "gradient_accumulation_steps": 4}
    [first, *_] = only(gang.run(program(train_exactly, rows), assignment(tmp_path, **words)))
    [one] = alone(train_exactly, rows, assignment(tmp_path, name="one", global_batch_size=24))
    [parts] = alone(train_exactly, rows, assignment(tmp_path, name="parts", **words))
    close(state(first)["model"], state(one)["model"])
    close(state(parts)["model"], state(one)["model"])


def counts_what_it_sends(context) -> None:
    with mock.patch.object(torch.distributed, "all_reduce", wraps=torch.distributed.all_reduce) as sent:
        model = context.prepare_model(network().float())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in context.epochs():
            updates = 0
            for features, labels in context.prepare_data("train", labels=torch.int64):
                updates += context.step(functional.cross_entropy(model(features), labels), optimizer)
            context.report({}, checkpoint={"sent": sent.call_count, "updates": updates})


@pytest.mark.parametrize(("precision", "buckets"), [("fp32", 2), ("bf16-master", 1)])
def test_what_accumulates_is_sent_once_an_update(gang: ProcessGang, tmp_path, precision, buckets):
    words = {"per_worker_batch_size": 4, "gradient_accumulation_steps": 3, "precision": precision}
    trial = assignment(tmp_path, stop=1, **words)
    [first, *_] = only(gang.run(program(counts_what_it_sends, 101), trial, before=small_buckets))
    assert state(first) == {"sent": 3 * buckets, "updates": 3}  # 34 rows a worker are 9 batches.


def test_every_rank_ends_with_the_same_bits(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 4, "leave": str(tmp_path)}
    only(gang.run(program(train_exactly, 101), assignment(tmp_path, **words), before=small_buckets))
    weights = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    close(weights[0], weights[1], 0.0)
    close(weights[0], weights[2], 0.0)


def train_part_of_a_model(context) -> None:
    """A parameter that no loss reaches, and a user's own zero_grad."""
    model = context.prepare_model(nn.ModuleDict({"used": network(), "unused": nn.Linear(3, 3)}).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", shuffle=False, labels=torch.int64):
            optimizer.zero_grad()
            context.step(functional.cross_entropy(model["used"](features.double()), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


def test_parameters_without_gradients_hold_nobody_up(gang: ProcessGang, tmp_path):
    words = {"stop": 1}
    [first, *_] = only(
        gang.run(
            program(train_part_of_a_model, 96),
            assignment(tmp_path, **words, per_worker_batch_size=4),
            before=small_buckets,
        )
    )
    [one] = alone(train_part_of_a_model, 96, assignment(tmp_path, **words, name="one", per_worker_batch_size=12))
    close(state(first)["model"], state(one)["model"])


def train_at_its_rate(context) -> None:
    model = context.prepare_model(nn.Linear(6, 1, bias=False))
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = []
    for _ in context.epochs():
        for _ in context.prepare_data("train"):
            context.step(-model.weight.sum(), optimizer)  # A gradient of -1, whatever the batch.
            weights.append(float(model.weight[0, 0]))
        context.report({}, checkpoint={"weights": weights, "lr": optimizer.param_groups[0]["lr"]})


def test_the_learning_rate_follows_the_rule(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8, "learning_rate_rule": "linear", "warmup_epochs": 1, "stop": 2}
    [first, *_] = only(gang.run(program(train_at_its_rate, 96), assignment(tmp_path, **words)))
    found = state(first)
    rates = np.diff([0.0, *found["weights"]])
    expected = 0.1 * np.array([1, 1.5, 2, 2.5, 3, 3, 3, 3])  # 4 updates an epoch; 3 workers.
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    assert found["lr"] == 0.1


def test_a_loader_is_dealt_out_to_the_workers(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        rows = TensorDataset(torch.arange(50.0)[:, None], torch.arange(50))
        batches = context.prepare_data(DataLoader(rows, batch_size=4, shuffle=True))
        orders = []
        for _ in context.epochs():
            counts, order = torch.zeros(50), []
            with torch.no_grad():
                for features, number in batches:
                    assert torch.equal(features[:, 0], number.float())
                    order += number.tolist()
                    counts[number] += 1
            orders.append(order)
            context.report({}, checkpoint={"counts": context.sum(counts), "orders": orders})

    [first, *_] = only(gang.run(program(train), assignment(tmp_path)))
    found = state(first)
    assert torch.equal(found["counts"], torch.ones(50))
    assert found["orders"][0] != found["orders"][1]
    assert len(found["orders"][0]) == 17


def test_a_paused_trial_ends_with_the_same_bits_on_this_gang_or_another(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8}
    straight = assignment(tmp_path, stop=4, name="straight", **words)
    first = assignment(tmp_path, stop=1, name="paused", **words)
    other = assignment(tmp_path, stop=2, name="other", **words)
    second = assignment(tmp_path, start=1, stop=4, name="paused", **words)
    moved = assignment(tmp_path, start=1, stop=4, name="moved", **words)
    make = program(train_with_everything, 107)
    answers = gang.run(make, straight, first, other, second, before=small_buckets)[0]
    whole, paused = state(answers[0]), state(answers[3])
    close(whole["model"], paused["model"], 0.0)
    assert str(whole["optimizer"]) == str(paused["optimizer"])
    assert answers[0].reports[1:] == answers[3].reports
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "1.pt").write_bytes((tmp_path / "paused" / "1.pt").read_bytes())
    with process_gang(3, str(tmp_path)) as another:
        elsewhere = state(another.run(make, moved, before=small_buckets)[0][0])
    close(whole["model"], elsewhere["model"], 0.0)


def test_a_trial_that_is_halted_at_any_report_ends_with_the_same_bits(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8}
    make = program(train_with_everything, 107)
    [straight] = gang.run(make, assignment(tmp_path, stop=5, name="straight", **words), before=small_buckets)[0]
    for first, second in [(2, None), (4, None), (2, 4)]:
        name = f"halted-{first}-{second}"
        save_to = str(tmp_path / name / "000005.pt")
        start, checkpoint, reports = 0, None, []
        for halt_at in (first, second, None):
            if start == 5:
                break
            given = words if halt_at is None else {**words, "halt_at": halt_at}
            order = replace(assignment(tmp_path, stop=5, **given), start=start, checkpoint=checkpoint, save_to=save_to)
            ranks = only(gang.run(make, order, before=small_buckets))
            assert {segment.reached for segment in ranks} == {halt_at or 5}
            start, checkpoint = ranks[0].reached, ranks[0].checkpoint
            assert checkpoint.endswith(f"/{start:06d}.pt")
            reports += ranks[0].reports
        assert tuple(reports) == straight.reports
        close(state(straight)["model"], TorchCheckpoint.read(checkpoint).state["model"], 0.0)
        assert str(state(straight)["optimizer"]) == str(TorchCheckpoint.read(checkpoint).state["optimizer"])


def test_a_halt_waits_for_a_report_with_a_checkpoint(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for epoch in context.epochs():
            context.report({}, checkpoint={"epoch": epoch} if epoch % 3 == 2 else None)

    for segment in only(gang.run(program(train), assignment(tmp_path, stop=9, halt_at=2, per_worker_batch_size=8))):
        assert (segment.reached, state(segment)) == (3, {"epoch": 2})
