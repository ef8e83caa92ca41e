"""Precisions: the same network in each, scales of losses as PyTorch's own, and pauses that lose nothing."""

from __future__ import annotations

import copy

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

from tests.support.allreduce import program
from tests.support.networks import assignment, close, state
from tests.support.process_gang import serve_alone
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.precision import LOW, flat, near, train
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.errors import ConfigurationError, DivergedError
from trainers.pytorch.state import Precision
from trainers.pytorch.state.mixed import LossScale, Mixed

HERE = ScalingConfig(num_workers=0)


@pytest.mark.parametrize("interval", [2, 5])
def test_the_scale_moves_as_that_of_pytorchs_own_grad_scaler(interval):
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    theirs = torch.amp.GradScaler("cpu", growth_interval=interval)
    ours = Mixed(Precision("fp16"))
    ours._scale = LossScale(interval=interval)
    for good in (True, True, False, True, True, True, True, True, False, False, True, True, True):
        loss = (weight * (1.0 if good else float("inf"))).sum()
        theirs.scale(loss).backward(retain_graph=True)
        theirs.step(optimizer)
        theirs.update()
        optimizer.zero_grad()
        ours.scaled(loss).backward()
        assert ours.unscaled([weight.grad]) is good
        assert not good or torch.equal(weight.grad, torch.ones(3))
        optimizer.zero_grad()
        assert ours.state == (theirs.get_scale(), theirs.state_dict()["_growth_tracker"])


def test_a_training_that_is_finite_at_no_scale_has_diverged():
    scale = LossScale()
    for _ in range(29):
        scale.update(False)
    with refuses(DivergedError, field=("gradients", "loss scale"), value="1.2e-04"):
        scale.update(False)


def test_gradients_whose_sum_is_too_large_for_their_type_are_finite():
    mixed = Mixed(Precision("fp16-master"), (1.0, 0))
    assert mixed.unscaled([torch.full((3,), 3e38), torch.full((3,), 6e4, dtype=torch.float16), None])
    assert not mixed.unscaled([torch.tensor([1.0, float("inf"), float("-inf")])])


@pytest.mark.parametrize("precision", LOW)
def test_it_trains_the_same_network_with_parameters_as_they_were(tmp_path, precision):
    words = {"per_worker_batch_size": 8}
    whole, low = (
        state(serve_alone(program(train, precision=name)(), assignment(tmp_path, name=name, **words))[0])
        for name in ("fp32", precision)
    )
    assert low["dtypes"] == ["torch.float32"]
    near(whole["model"], low["model"])
    assert any(not torch.equal(whole["model"][name], low["model"][name]) for name in whole["model"])


@pytest.mark.parametrize("precision", LOW)
def test_it_is_a_hyperparameter_that_goes_before_the_trainers(tmp_path, precision):
    words = {"per_worker_batch_size": 8}
    trials = [
        assignment(tmp_path, name="said", **words, precision=precision),
        assignment(tmp_path, name="not", **words),
    ]
    said, plain = map(state, serve_alone(program(train)(), *trials))
    [configured] = serve_alone(program(train, precision=precision)(), assignment(tmp_path, name="c", **words))
    close(flat(said), flat(state(configured)), 0.0)
    [alone] = serve_alone(program(train)(), assignment(tmp_path, name="alone", **words))
    close(flat(plain), flat(state(alone)), 0.0)


def test_gradients_of_a_low_copy_are_as_low_and_those_of_normalisation_are_not():
    mixed = Mixed(Precision("bf16-master"))
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    with mixed.computing(model), torch.autocast("cpu", dtype=torch.bfloat16):
        assert [part.dtype for part in model.parameters()] == [*[torch.bfloat16] * 2, *[torch.float32] * 2] + [
            torch.bfloat16
        ] * 2
        output = model(torch.randn(3, 4))
    assert {part.dtype for part in model.parameters()} == {torch.float32}
    with mixed.stepping():
        output.sum().backward()
    leaves = mixed.leaves(list(model.parameters()))
    assert [leaf.grad.dtype for leaf in leaves] == [leaf.dtype for leaf in leaves]
    assert model[0].weight.grad is None
    with mixed.handed_over(list(model.parameters())):
        assert torch.equal(model[0].weight.grad, leaves[0].grad.float())


def test_a_tied_parameter_has_one_low_copy():
    mixed = Mixed(Precision("bf16-master"))
    model = nn.ModuleDict({"embedding": nn.Embedding(5, 4), "head": nn.Linear(4, 5, bias=False)})
    model["head"].weight = model["embedding"].weight
    with mixed.computing(model):
        assert model["head"].weight is model["embedding"].weight
        model["head"](model["embedding"](torch.tensor([1, 2]))).sum().backward()
    assert model["head"].weight.grad.count_nonzero()  # A backward pass of the function's own, in full precision.


@pytest.mark.parametrize("precision", ["bf16-master", "fp16-master"])
def test_a_step_of_ones_own_trains_on_one_worker(tmp_path, precision):
    def steps_itself(context) -> None:
        model = context.prepare_model(nn.Linear(6, 2))
        before = model.weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            for features, labels in context.prepare_data("train", labels=torch.int64):
                optimizer.zero_grad()
                functional.cross_entropy(model(features), labels).backward()
                optimizer.step()
            context.report({}, checkpoint={"moved": (model.weight - before).detach()})

    [found] = serve_alone(program(steps_itself)(), assignment(tmp_path, per_worker_batch_size=8, precision=precision))
    assert state(found)["moved"].abs().max() > 0.01


def test_a_copy_of_a_model_has_low_copies_of_its_own(tmp_path):
    def function(context) -> None:
        rows = context.shard("train").features
        for _ in context.epochs():
            model = context.prepare_model(nn.Linear(6, 2))
            before = model(rows)
            student = copy.deepcopy(model)
            with torch.no_grad():
                model.weight.zero_()
                model.bias.data.zero_()
            context.report({}, checkpoint={"before": before, "model": model(rows), "student": student(rows)})

    [found] = serve_alone(program(function, precision="bf16-master")(), assignment(tmp_path, stop=1))
    found = state(found)
    assert not found["model"].count_nonzero()
    assert torch.equal(found["student"], found["before"])


@pytest.mark.parametrize("trainer", [TorchTrainer, ParameterServerTrainer])
def test_an_unknown_precision_is_refused_before_anything_starts(trainer):
    with refuses(ConfigurationError, field="precision", value="fp61", remedy=("fp32", "bf16", "fp16", "bf16-master")):
        trainer(train, scaling=HERE, precision="fp61")
    with refuses(ConfigurationError, field="precision", value=16, remedy=("fp32", "bf16", "fp16")):
        trainer(train, scaling=HERE).check({"precision": 16})


def test_a_precision_that_the_device_lacks_is_refused():
    with refuses(ConfigurationError, field=("precision", "meta"), value="bf16", remedy=("fp32", "accelerator_type")):
        Precision("bf16").check(torch.device("meta"))
