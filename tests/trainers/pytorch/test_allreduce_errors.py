"""What goes wrong where workers compute together: every rank says the same, and nobody waits for ever."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.support.allreduce import alone, only, only_errors, program, train_with_everything
from tests.support.networks import assignment, data, network, train_exactly
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions, refuses, refuses_each
from trainers import ConfigurationError, TorchTrainer, TrialError
from trainers.channels import Channel
from trainers.errors import DataError, DivergedError
from trainers.gangs.messages import Assignment, Segment


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
def test_ranks_that_go_different_ways_are_told(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        for _ in context.epochs():
            if context.rank == 1:
                context.sum(1.0)
            context.report({}, checkpoint={})

    errors = only_errors(gang.run(program(train), assignment(tmp_path)))
    for error in errors:
        mentions(str(error), "rank 0", "epoch 0", "rank 1", "context.sum")


@pytest.mark.process
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


@pytest.mark.process
def test_a_rank_that_stays_away_is_named_by_a_deadline(gang: ProcessGang, tmp_path):
    def train(context) -> None:
        import time

        for _ in context.epochs():
            if context.rank == 2:
                time.sleep(4)
            context.report({}, checkpoint={})

    first, *_ = only_errors(gang.run(program(train, timeout=2.0), assignment(tmp_path)))
    mentions(str(first), "2 s", "epoch 0", "[2]", "report()")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (lambda context: None, ("rank 0", "0", "2", "context.epochs()", "report()", "final=True")),
        (lambda context: list(context.epochs()), ("rank 0", "epoch 0", "report()")),
        (lambda context: [context.report({}) for _ in range(2)], ("epoch 0", "report()", "epochs()")),
        (lambda context: [context.report({}) for _ in context.epochs()], ("epoch 1", "checkpoint", "None", "model")),
        (lambda context: context.report({}, final=True), ("epoch 0", "checkpoint", "None", "model")),
        (
            lambda context: next(context.epochs()) or context.report({}, checkpoint={}),
            ("1", "2", "context.epochs()", "report()", "final=True"),
        ),
        (lambda context: context.report({"a:b": "good"}), ("metric", "a:b", "good", "number")),
        (lambda context: context.report({"a:b": 10**400}), ("metric", "a:b", "float")),
        (lambda context: context.shard("trian"), ("channel", "trian", "train", "fit()")),
        (lambda context: context.prepare_data("train"), ("per_worker_batch_size", "global_batch_size")),
        (
            lambda context: [context.report({}, checkpoint={"model": nn.Linear(1, 1)}) for _ in context.epochs()],
            ("checkpoint['model']", "torch.nn.modules.linear.Linear", "tensors"),
        ),
    ],
)
def test_a_wrong_function_is_told(tmp_path, body, names):
    [error] = alone(body, 96, assignment(tmp_path))
    assert isinstance(error, TrialError), error
    mentions(str(error), *names)


def test_a_function_that_never_reports_is_ended_by_a_deadline(tmp_path):
    def train(context) -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    [error] = serve_alone(program(train, timeout=0.5)(), assignment(tmp_path))
    mentions(str(error), "0.625 s", "report", "trial", "0")


def resume_from(tmp_path, function, raw: bytes) -> Exception:
    (tmp_path / "trial").mkdir(exist_ok=True)
    (tmp_path / "trial" / "1.pt").write_bytes(raw)
    [error] = alone(function, 96, assignment(tmp_path, start=1, per_worker_batch_size=8))
    assert isinstance(error, Exception)
    return error


def test_a_checkpoint_that_is_none_is_named(tmp_path):
    alone(train_with_everything, 96, assignment(tmp_path, stop=1, per_worker_batch_size=8))
    whole = (tmp_path / "trial" / "1.pt").read_bytes()
    for raw in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1], b"{}", whole[::-1]):
        error = resume_from(tmp_path, train_with_everything, raw)
        assert isinstance(error, DataError), error
        mentions(str(error), "checkpoint", str(tmp_path / "trial" / "1.pt"))


def test_a_checkpoint_of_another_model_is_named(tmp_path):
    def train(context) -> None:
        model = context.prepare_model(nn.Linear(6, 9))
        model.load_state_dict(context.checkpoint["model"])

    alone(train_with_everything, 96, assignment(tmp_path, stop=1, per_worker_batch_size=8))
    error = resume_from(tmp_path, train, (tmp_path / "trial" / "1.pt").read_bytes())
    mentions(str(error), str(tmp_path / "trial" / "1.pt"), "model", "weight", "0.weight", "hyperparameters")


def test_values_that_a_network_cannot_take_are_refused(tmp_path):
    features, labels = data()
    features[3, 2] = np.nan
    trainer = TorchTrainer(train_exactly, scaling=ScalingConfig(num_workers=0))
    with refuses(DataError, field=("channel", "train"), value=1, remedy="NaN"):
        serve_alone(trainer.program({"train": Channel.of((features, labels), name="train").place(0)}))


def test_what_cannot_be_right_is_refused_where_it_is_given():
    def made(arguments):
        given = {"train_loop_per_worker": train_exactly, "scaling": ScalingConfig(num_workers=2), **arguments}
        return TorchTrainer(given.pop("train_loop_per_worker"), **given)

    here, on_gpu = ScalingConfig(num_workers=0), ScalingConfig(num_workers=0, use_gpu=True)
    cases = [
        ({"train_loop_per_worker": 3}, ("train_loop_per_worker", "3", "function", "module:name")),
        ({"train_loop_per_worker": "nowhere"}, ("train_loop_per_worker", "nowhere", "function", "module:name")),
        ({"train_loop_per_worker": "nowhere:train"}, ("train_loop_per_worker", "nowhere:train", "function", "module")),
        ({"train_loop_per_worker": "math:pi"}, ("train_loop_per_worker", "math:pi", "float", "function")),
        ({"precision": "fp61"}, ("precision", "fp61", "fp32", "bf16", "fp16", "bf16-master")),
        ({"compile": 1}, ("compile", "1", "True", "False")),
        ({"metrics": "validation:accuracy"}, ("metrics", "'validation:accuracy'", "['validation:accuracy']")),
        ({"metrics": ["accuracy"]}, ("metrics", "'accuracy'", "validation:accuracy")),
        ({"report_timeout_s": 0}, ("report_timeout_s", "0")),
        ({"hyperparameters": {"epochs": 1.5}}, ("epochs", "1.5")),
        ({"hyperparameters": {"num_workers": 0}}, ("num_workers", "0", "1")),
        ({"hyperparameters": {"global_batch_size": 7}}, ("global_batch_size", "7", "2", "workers")),
        ({"hyperparameters": {"global_batch_size": 9, "num_workers": 4}}, ("global_batch_size", "9", "4", "workers")),
        ({"scaling": here, "hyperparameters": {"num_workers": 4}}, ("num_workers", "4", "num_workers=0", "1")),
        ({"scaling": on_gpu}, ("use_gpu=True", "GPU", "use_gpu=False")),
    ]
    refuses_each([(partial(made, arguments), names) for arguments, names in cases], ConfigurationError)


def test_a_loader_of_another_batch_size_is_refused(tmp_path):
    def train(context) -> None:
        context.prepare_data(DataLoader(TensorDataset(torch.arange(50)), batch_size=4))

    [error] = alone(train, 96, assignment(tmp_path, per_worker_batch_size=8))
    mentions(str(error), "DataLoader", "batch_size", "4", "8", "context.batch.per_worker_batch_size")
