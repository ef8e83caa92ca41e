"""What goes wrong where workers compute together: every rank says the same, and nobody waits for ever."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.allreduce import alone, only, only_errors, program
from tests.support.networks import assignment, network, train_exactly
from tests.support.process_gang import ProcessGang
from tests.support.refusals import mentions
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Segment


def test_a_network_that_diverges_says_so_on_every_rank(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        model = context.prepare_model(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e200)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", labels=torch.int64):
                context.step(model(features.double()).pow(2).mean() + labels.sum() * 0, optimizer)
            context.report({}, checkpoint={})

    answers = gang.run(program(train), assignment(tmp_path, per_worker_batch_size=4))
    assert {type(error) for error in only_errors(answers)} == {DivergedError}
    [error] = alone(train, 96, assignment(tmp_path, per_worker_batch_size=4))
    assert isinstance(error, DivergedError)


@pytest.mark.parametrize("bad_epoch", [0, 1])
def test_an_objective_that_is_not_finite_on_rank_0_ends_every_rank(gang: ProcessGang, tmp_path, bad_epoch: int):
    """With that report, the last one too; what the others report counts nowhere."""

    def train(context) -> None:
        model = context.prepare_model(network())
        for epoch in context.epochs():
            bad = context.rank == 1 or (context.rank == 0 and epoch == context.hyperparameters["bad_epoch"])
            context.report({"loss": math.nan if bad else 1.0}, checkpoint={"model": model.state_dict()})

    def told(name: str, epoch: int) -> Assignment:
        made = assignment(tmp_path, name=name, per_worker_batch_size=4, bad_epoch=epoch)
        return replace(made, objective="loss")

    for refused, served in gang.run(program(train), told("bad", bad_epoch), told("good", 99)):
        assert isinstance(refused, DivergedError)
        assert f"unit {bad_epoch + 1}" in str(refused)
        assert not isinstance(served, Exception), served
    assert not (tmp_path / "bad").exists()


def test_reporting_from_one_rank_only_is_found(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for _ in context.epochs():
            if context.rank == 0:
                context.report({}, checkpoint={})

    first, *others = only_errors(gang.run(program(train), assignment(tmp_path)))
    assert "rank 1" in str(first) or "rank 2" in str(first)
    for error in others:
        mentions(str(error), "epoch 0", "report()")
    again = gang.run(program(train_exactly), assignment(tmp_path, name="again", per_worker_batch_size=4))
    only(again)


def test_the_gang_serves_on_after_a_trial_that_failed_on_every_rank(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        if context.hyperparameters.get("wrong"):
            context.sum(torch.ones(3))
            raise ValueError("not today")
        train_exactly(context)

    wrong = assignment(tmp_path, name="wrong", per_worker_batch_size=4, wrong=True)
    right = assignment(tmp_path, name="right", per_worker_batch_size=4)
    for refused, served in gang.run(program(train), wrong, right):
        assert "not today" in str(refused)
        assert not isinstance(served, Exception), served


def test_an_error_on_one_rank_is_every_ranks(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        model = context.prepare_model(network())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", labels=torch.int64):
                if context.rank == 1:
                    raise ValueError("a bad row")
                context.step(functional.cross_entropy(model(features.double()), labels), optimizer)

    first, second, third = only_errors(gang.run(program(train), assignment(tmp_path, per_worker_batch_size=4)))
    assert str(first) == str(third) == "rank 1 failed: ValueError: a bad row"
    assert isinstance(second, ValueError)


def test_ranks_that_go_different_ways_are_told(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for _ in context.epochs():
            if context.rank == 1:
                context.sum(1.0)
            context.report({}, checkpoint={})

    errors = only_errors(gang.run(program(train), assignment(tmp_path)))
    for error in errors:
        mentions(str(error), "rank 0", "epoch 0", "rank 1", "context.sum")


@pytest.mark.parametrize("kind", ["model", "sum"])
def test_workers_with_other_shapes_are_told_and_none_dies(gang: ProcessGang, tmp_path, kind: str):
    """Gloo would end the process of a worker that gets more than it asked for."""

    def train(context) -> None:
        width = 900 if context.rank == 0 and context.hyperparameters["differs"] else 8
        if kind == "model":
            context.prepare_model(nn.Linear(6, width))
        else:
            context.sum(torch.ones(width, 2))
        for _ in context.epochs():
            context.report({"train:x": 0.0}, checkpoint={})

    orders = [assignment(tmp_path, stop=1, name=f"{differs}", differs=differs) for differs in (True, False)]
    answers = gang.run(program(train), *orders)
    what = {
        "model": ("rank 0", "rank 1", "parameters", "6300", "56", "float32"),
        "sum": ("rank 0", "rank 1", "context.sum()", "900x2", "8x2", "float32"),
    }
    for answer in answers:
        mentions(str(answer[0]), *what[kind])
    assert all(isinstance(answer[1], Segment) for answer in answers), answers


def test_a_rank_that_stays_away_is_named_by_a_deadline(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        import time

        for _ in context.epochs():
            if context.rank == 2:
                time.sleep(4)
            context.report({}, checkpoint={})

    first, *_ = only_errors(gang.run(program(train, timeout=2.0), assignment(tmp_path)))
    mentions(str(first), "2 s", "epoch 0", "[2]", "report()")
