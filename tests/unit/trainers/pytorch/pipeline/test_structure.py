"""The sequence of a model's members, and what its forward pass does between them."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.support.pipelines import CPU, text, transformer
from tests.support.refusals import refuses, refuses_each
from tests.support.transformer import LENGTH, PLAN, TOKENS, WIDTH
from trainers import TrialError
from trainers.pytorch.layouts import without_data
from trainers.pytorch.pipeline.structure import Trace, sequence_of, traced
from trainers.pytorch.state import random_state


class Made(nn.Module):
    """Two linear layers, composed as a test says."""

    def __init__(self, compute: Callable[[Made, Tensor], object]) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU(inplace=True))])
        self._compute = compute

    def forward(self, x: Tensor) -> object:
        return self._compute(self, x)


class Two(nn.Module):
    """Takes and returns two tensors."""

    def forward(self, x: Tensor, y: Tensor, *, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        return x * scale, y


def trace(
    compute: Callable[[Made, Tensor], object], *members: str, changed: Callable[[Made], None] | None = None
) -> Trace:
    model = Made(compute)
    if changed:
        changed(model)
    return traced(without_data(model), members or ("first", "second"), ((torch.empty(2, 3, device="meta"),), {}))


def test_lists_stand_for_their_members():
    model = transformer()
    assert sequence_of(model, PLAN.sequence) == (
        "embedding",
        "blocks.0",
        "blocks.1",
        "blocks.2",
        "blocks.3",
        "head.0",
        "head.1",
    )
    assert sequence_of(Made(lambda m, x: x), ["layers"]) == ("layers.0", "layers.1.0", "layers.1.1")
    inner = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    assert sequence_of(inner, ()) == ("0", "1.0", "1.1")


def test_names_are_checked():
    with refuses(TrialError, field="Transformer", remedy="ModelPlan(sequence="):
        sequence_of(transformer(), ())
    with refuses(TrialError, field=("ModelPlan.sequence", "Transformer"), value="hed", remedy="head"):
        sequence_of(transformer(), ["embedding", "blocks", "hed"])
    with refuses(TrialError, field="ModelPlan.sequence", value="blocks.0"):
        sequence_of(transformer(), ["embedding", "blocks.0", "blocks"])


def test_the_copy_has_no_data_and_the_same_ties():
    model = Made(lambda m, x: x)
    model.second.weight = model.first.weight
    model.first.bias.requires_grad_(False)
    copied = without_data(model)
    assert all(parameter.is_meta for parameter in copied.parameters())
    assert copied.second.weight is copied.first.weight
    assert not copied.first.bias.requires_grad
    assert not model.first.weight.is_meta


def test_a_transformer_s_shapes():
    tokens, _ = text(4)
    members = sequence_of(transformer(), PLAN.sequence)
    found = traced(without_data(transformer()), members, ((tokens.to("meta"),), {}))
    assert [tuple(joint.values[0].shape) for joint in found.joints] == [(4, LENGTH, WIDTH)] * 6 + [(4, LENGTH, TOKENS)]


def test_what_changes_its_input_in_place_is_noted():
    layers = ("layers.0", "layers.1.0", "layers.1.1")

    def compute(model: Made, x: Tensor) -> Tensor:
        return model.layers[1](model.layers[0](x))

    assert [joint.changes for joint in trace(compute, *layers).joints] == [False, False, True]


def test_members_may_pass_several_tensors_and_constants():
    def two(model: Made) -> None:
        model.first, model.second = Two(), Two()

    def compute(model: Made, x: Tensor) -> dict[str, Tensor]:
        y, z = model.first(x, x)
        y, z = model.second(z, scale=2.0, y=y)
        return {"y": y, "z": z}

    found = trace(compute, changed=two)
    assert found.joints[1].taken[1]["scale"] == 2.0
    assert found.joints[1].taken[0][0].index == 1
    assert found.joints[1].taken[1]["y"].index == 0
    assert list(found.output) == ["y", "z"]


def test_a_forward_pass_that_is_not_the_composition_is_refused():
    cases = [
        (lambda m, x: m.second(m.first(x) + x), ("second", "(2, 3)", "first")),
        (lambda m, x: m.second(x), ("ModelPlan.sequence", "second", "first")),
        (lambda m, x: (m.first(x), m.second(x))[1], ("second", "(2, 3)", "first", "input")),
        (lambda m, x: m.first(m.first(x)), ("ModelPlan.sequence", "first")),
        (lambda m, x: m.first(x), ("ModelPlan.sequence", "second", "forward")),
        (lambda m, x: m.first(x * 2), ("first", "(2, 3)", "input")),
        (lambda m, x: m.second(m.first(x)).relu(), ("model", "(2, 3)", "second")),
        (lambda m, x: m.second(m.first(x).relu_()), ("second", "first", "place")),
        (lambda m, x: m.second(m.first(x)) if x.sum() > 0 else x, ("Made", "forward", "values")),
    ]
    refuses_each([(partial(trace, compute), names) for compute, names in cases], TrialError)


def filled_in(x: Tensor) -> Tensor:
    made = torch.zeros(2, 3)
    made[:, :3] = x
    return made


def added_up(x: Tensor) -> Tensor:
    total = torch.zeros(2, 3)
    total += x
    return total


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + torch.arange(3),
        lambda x: x * torch.from_numpy(np.ones(3, np.float32)),
        lambda x: torch.cat([x, torch.zeros(2, 0)], 1) + torch.arange(3, device=x.device),
        lambda x: x.masked_fill(torch.ones(2, 3).triu(1) > 0, 0.0),
        lambda x: torch.ones(2, 3),
        filled_in,
        added_up,
    ],
    ids=["positions", "numpy", "on a device", "mask", "no input", "filled in", "added up"],
)
def test_a_member_may_make_tensors(compute):
    found = trace(lambda m, x: m.second(compute_in(m.first, compute)(x)))
    assert [(value.shape, value.is_meta) for value in found.joints[0].values] == [((2, 3), True)]


def compute_in(module: nn.Module, compute: Callable[[Tensor], Tensor]) -> nn.Module:
    module.forward = lambda x: compute(x)
    return module


def test_what_outlives_a_pass_without_data_is_as_it_was():
    """A cache of the model's author has values, and generators of random numbers stand where they stood."""
    cache: list[Tensor] = []

    def positions(x: Tensor) -> Tensor:
        if not cache:
            cache.append(torch.arange(3) * 2.0)
        return x * cache[0] + random.random() + torch.randn(3)

    model = without_data(Made(lambda m, x: m.second(compute_in(m.first, positions)(x))))
    before = random_state.take(CPU)
    traced(model, ("first", "second"), ((torch.empty(2, 3, device="meta"),), {}))
    assert cache[0].tolist() == [0, 2, 4]
    after = random_state.take(CPU)
    assert after["python"] == before["python"]
    assert torch.equal(after["torch"], before["torch"])


def test_a_member_within_another_is_refused():
    with refuses(TrialError, field=("ModelPlan.sequence", "layers.1.0"), value="layers.1"):
        trace(lambda m, x: m.layers[1](x), "layers.1", "layers.1.0")


def test_a_member_that_returns_no_tensor_is_refused():
    def nothing(model: Made) -> None:
        model.first.forward = lambda x: None

    with refuses(TrialError, field="first", value="NoneType", remedy="tensors"):
        trace(lambda m, x: m.second(m.first(x) or x), changed=nothing)
