"""Precisions: the same network in each, scales of losses as PyTorch's own, and pauses that lose nothing."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from ray.train import ScalingConfig
from torch import nn
from torch.nn import functional

from tests.support.allreduce import only, only_errors, program
from tests.support.networks import assignment, close, servers, small_buckets, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions, refuses
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.errors import ConfigurationError, DivergedError
from trainers.pytorch.state import Precision
from trainers.pytorch.state.checkpoint import TorchCheckpoint
from trainers.pytorch.state.mixed import LossScale, Mixed

HERE = ScalingConfig(num_workers=0)
LOW = ["bf16", "fp16", "bf16-master", "fp16-master"]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))


def train(context) -> None:
    """Adam with a schedule; `burst` makes the gradients of one batch in six overflow, on one worker, at first."""
    words = context.hyperparameters
    model = context.prepare_model(network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = context.prepare_data("train", labels=torch.int64)
    if context.checkpoint is not None:
        model.load_state_dict(context.checkpoint["model"])
        optimizer.load_state_dict(context.checkpoint["optimizer"])
    for _ in context.epochs():
        dtypes = set()
        for at, (features, labels) in enumerate(batches):
            output = model(features)
            loss = functional.cross_entropy(output, labels)
            if words.get("burst") and at % 6 == 3 and context.rank == context.world_size - 1:
                loss = loss * words["burst"]
            context.step(loss, optimizer, max_norm=words.get("max_norm"))
            dtypes |= {str(part.dtype) for part in (output, *model.parameters())}
        if "leave" in words:
            torch.save(model.state_dict(), f"{words['leave']}/{context.rank}.pt")
        found = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "dtypes": sorted(dtypes)}
        context.report({}, checkpoint=found)


def flat(found: dict) -> dict:
    """Every tensor of a checkpoint's state, by name."""
    moments = {
        f"{number}/{name}": value for number, one in found["optimizer"]["state"].items() for name, value in one.items()
    }
    return {**found["model"], **moments}


def near(one: dict, other: dict, tolerance: float = 0.05) -> None:
    """Weights alone: the first bias stands before a normalisation, its gradient is rounding, and Adam divides by it."""
    names = ["0.weight", "1.weight", "4.weight", "4.bias"]
    close({name: one[name] for name in names}, {name: other[name] for name in names}, tolerance)


# ---- the scale of losses


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


# ---- training in it


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


@pytest.mark.process
@pytest.mark.parametrize("precision", LOW)
def test_workers_agree_and_a_pause_loses_no_bit(gang: ProcessGang, tmp_path, precision):
    """With an overflow on one worker alone in each epoch, whose update no worker makes."""
    words = {"per_worker_batch_size": 4, "precision": precision, "leave": str(tmp_path)}
    if "fp16" in precision:
        words["burst"] = 1e6

    def served(*trials):
        return only_all(gang.run(program(train), *trials, before=small_buckets))[0]

    whole, _ = served(assignment(tmp_path, 0, 3, "whole", **words), assignment(tmp_path, 0, 1, "parts", **words))
    [rest] = served(assignment(tmp_path, 1, 3, "parts", **words))
    close(flat(state(whole)), flat(state(rest)), 0.0)
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    for other in ranks[1:]:
        for name in ("0.weight", "4.bias"):
            assert torch.equal(ranks[0][name], other[name])
    scales = TorchCheckpoint.read(rest.checkpoint).scales
    assert len(set(scales)) == (1 if "fp16" in precision else 0)
    if scales:
        assert scales[0][0] < 65536
        assert scales == TorchCheckpoint.read(whole.checkpoint).scales
        # Three skipped updates are none of Adam's.
        assert state(whole)["optimizer"]["state"][0]["step"] == whole_updates(whole) - 3


def whole_updates(segment) -> int:
    return TorchCheckpoint.read(segment.checkpoint).updates


def only_all(answers: list) -> list:
    for answer in answers:
        for one in answer:
            if isinstance(one, Exception):
                raise one
    return answers


@pytest.mark.process
@pytest.mark.parametrize("precision", LOW)
def test_workers_together_come_near_one_worker_with_their_batch(gang: ProcessGang, tmp_path, precision):
    def exactly(context) -> None:
        model = context.prepare_model(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        batches = context.prepare_data("train", shuffle=False, labels=torch.int64)
        for _ in context.epochs():
            for features, labels in batches:
                context.step(functional.cross_entropy(model(features), labels), optimizer, max_norm=0.5)
            context.report({}, checkpoint={"model": model.state_dict()})

    words = {"global_batch_size": 24, "precision": precision}
    parts = {**words, "gradient_accumulation_steps": 2}
    three, accumulated = only_all(
        gang.run(program(exactly), assignment(tmp_path, **words), assignment(tmp_path, name="parts", **parts))
    )[0]
    [one] = serve_alone(program(exactly)(), assignment(tmp_path, name="one", **words))
    close(state(three)["model"], state(one)["model"], 0.01)
    close(state(accumulated)["model"], state(one)["model"], 0.01)


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


# ---- what else a function does


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


def penalised(context) -> None:
    model = context.prepare_model(nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features), labels) + model.weight.square().sum(), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


@pytest.mark.process
def test_a_penalty_on_parameters_is_refused_where_gradients_are_low(gang: ProcessGang, tmp_path):
    words = {"per_worker_batch_size": 8}
    errors = only_errors(gang.run(program(penalised), assignment(tmp_path, **words, precision="bf16-master")))
    mentions(str(errors[0]), "precision", "bf16-master", "penalty", "parameters", "optimizer.zero_grad()", "bf16")
    only(gang.run(program(penalised), assignment(tmp_path, **words, precision="bf16")))


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


# ---- what is refused


@pytest.mark.parametrize("trainer", [TorchTrainer, ParameterServerTrainer])
def test_an_unknown_precision_is_refused_before_anything_starts(trainer):
    with refuses(ConfigurationError, field="precision", value="fp61", remedy=("fp32", "bf16", "fp16", "bf16-master")):
        trainer(train, scaling=HERE, precision="fp61")
    with refuses(ConfigurationError, field="precision", value=16, remedy=("fp32", "bf16", "fp16")):
        trainer(train, scaling=HERE).check({"precision": 16})


def test_a_precision_that_the_device_lacks_is_refused():
    with refuses(ConfigurationError, field=("precision", "meta"), value="bf16", remedy=("fp32", "accelerator_type")):
        Precision("bf16").check(torch.device("meta"))
