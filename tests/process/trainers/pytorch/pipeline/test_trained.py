"""Training functions in a pipeline, through a trainer's program."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ray.train import ScalingConfig
from torch import nn

from tests.support.networks import assignment
from tests.support.process_gang import SECONDS, ProcessGang, process_gang, serve_alone
from tests.support.transformer import train_text
from trainers import Layout, TorchTrainer
from trainers.errors import DivergedError
from trainers.pytorch import ModelPlan as Plan


@pytest.fixture(scope="module")
def gang(tmp_path_factory):
    with process_gang(2, str(tmp_path_factory.mktemp("stores"))) as started:
        yield started


def program(function: Any, layout: str = "pipeline=2 micro_batches=4", *, timeout: float = 60.0, **options: Any) -> Any:
    """Makes the program of a trainer, on whichever process asks."""

    def make() -> Any:
        trainer = TorchTrainer(function, scaling=ScalingConfig(num_workers=0), report_timeout_s=timeout, **options)
        trainer.layout = Layout.parse(layout)
        return trainer.program({})

    return make


def test_mixed_precision_reaches_the_stages(gang: ProcessGang, tmp_path):
    """Each of them computes in bfloat16, as the whole model does, and hands float32 on."""
    function = partial(train_text, dtype=torch.float32)
    words = {"global_batch_size": 8, "rows": 24}
    expected = serve_alone(program(function, "", precision="bf16")(), assignment(tmp_path / "alone", **words))[0]
    exact = serve_alone(program(function, "")(), assignment(tmp_path / "exact", **words))[0]
    for [segment] in gang.run(program(function, precision="bf16"), assignment(tmp_path / "gang", **words)):
        assert not isinstance(segment, Exception), segment
        for mine, same, other in zip(segment.reports, expected.reports, exact.reports, strict=True):
            assert mine.metrics["train:loss"] == pytest.approx(same.metrics["train:loss"], rel=2e-3)
            assert mine.metrics["train:loss"] != other.metrics["train:loss"]


def failing(backward: bool) -> Any:
    """A function whose last stage fails on the last worker."""

    class FailsBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx, gradient: torch.Tensor) -> torch.Tensor:
            fail(backward)
            return gradient

    def fail(here: bool) -> None:
        if here and dist.get_rank() == dist.get_world_size() - 1:
            raise ValueError("a stage that fails")

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not x.is_meta:
                fail(not backward)
            return FailsBackward.apply(self.layer(x))

    def train(context) -> None:
        model = context.prepare_model(
            nn.Sequential(nn.Linear(4, 4), *(Block() for _ in range(3))), Plan(blocks=(Block,))
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            context.step(model(torch.ones(8, 4)).mean(), optimizer)

    return train


def check_that_all_fail(gang: ProcessGang, layout: str, backward: bool, folder: Path) -> None:
    """At once: the gang's answers would come too late, if the others waited for their deadline."""
    answers = gang.run(program(failing(backward), layout, timeout=2 * SECONDS), assignment(folder))
    assert "a stage that fails" in str(answers[0][0])
    assert isinstance(answers[-1][0], ValueError)
    words = {"global_batch_size": 8, "rows": 8}
    for [segment] in gang.run(program(train_text, layout), assignment(folder / "again", **words)):
        assert not isinstance(segment, Exception), segment


@pytest.mark.parametrize("backward", [False, True])
def test_a_worker_that_fails_within_a_stage_ends_the_others_at_once(gang: ProcessGang, tmp_path, backward: bool):
    check_that_all_fail(gang, "pipeline=2 micro_batches=4", backward, tmp_path)


def test_a_worker_that_fails_in_a_stage_s_shards_ends_the_others_at_once(tmp_path):
    """A graph of gradients holds the shards' hooks, with their connections, for longer than one collection."""
    with process_gang(4, str(tmp_path)) as four:
        check_that_all_fail(four, "pipeline=2 shard=2", True, tmp_path)


@lru_cache
def scales(width: int) -> torch.Tensor:
    return torch.arange(1.0, width + 1) / width


class Skips(nn.Module):
    """A layer that is left out now and then, as Python's generator says, and scales by a table that is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if random.random() < 0.3 else nn.functional.dropout(self.layer(x) * scales(4), 0.1)


def skips(context) -> None:
    """The function's own draws are those of Python's generator, too."""
    torch.manual_seed(5)
    model = context.prepare_model(nn.Sequential(*(Skips() for _ in range(4))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
    for _ in context.epochs():
        for rows in (8, 4):
            loss = model(torch.ones(rows, 4) * random.random()).square().mean()
            context.step(loss, optimizer)
        context.report({"train:loss": loss.item()}, checkpoint={"model": model.state_dict()})


def test_a_paused_trial_whose_model_draws_goes_on_as_one_that_stayed(gang: ProcessGang, tmp_path):
    """And leaves to the gang's next trial, of replicas, a cache that has values."""
    trials = [(0, 4, "stayed"), (0, 2, "paused"), (2, 4, "paused")]
    orders = [assignment(tmp_path, *trial) for trial in trials]
    orders[2] = replace(orders[2], checkpoint=orders[1].save_to)
    words = {"layout": "replicate=2", "per_worker_batch_size": 8}
    answers = gang.run(program(skips), *orders, assignment(tmp_path, 0, 1, "replicas", **words))
    for answer in answers:
        assert not [found for found in answer if isinstance(found, Exception)], answer
    losses = [[report.metrics["train:loss"] for report in segment.reports] for segment in answers[0]]
    assert losses[0] == losses[1] + losses[2]


def test_a_loss_that_is_not_finite_ends_all(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).double())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e200)
        for _ in context.epochs():
            for _ in range(40):
                context.step(model(torch.ones(8, 4).double()).square().mean(), optimizer)
            context.report({}, checkpoint={})

    for [error] in gang.run(program(train), assignment(tmp_path)):
        assert isinstance(error, DivergedError), error
