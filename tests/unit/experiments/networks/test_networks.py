"""The GPT and the convolutional network: what they compute, how workers may share them, and that they learn."""

from __future__ import annotations

import fnmatch
import math
from typing import Any

import pytest
import torch

from experiments.networks import convolutional, gpt, recipe

TINY = gpt.SIZES["tiny"]


def test_the_sizes_have_as_many_parameters_as_is_said() -> None:
    counted = {
        name: sum(parameter.numel() for parameter in gpt.GPT(size, context=128).parameters())
        for name, size in gpt.SIZES.items()
    }
    assert counted == {"tiny": 45_888, "small": 874_752, "base": 10_891_008}
    images = sum(parameter.numel() for parameter in convolutional.convolutional(784).parameters())
    assert images == pytest.approx(422_000, rel=0.01)


def test_a_token_sees_those_before_it_alone() -> None:
    torch.manual_seed(3)
    model, tokens = gpt.GPT(TINY, context=16), torch.randint(0, 256, (2, 16))
    changed = tokens.clone()
    changed[:, 9] = (changed[:, 9] + 1) % 256
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert before.shape == (2, 16, 256)
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.equal(before[:, 9:], after[:, 9:])


def test_its_forward_pass_is_the_composition_that_its_plan_names() -> None:
    model, tokens = gpt.GPT(TINY, context=16), torch.randint(0, 256, (2, 16))
    passed = tokens
    for name in gpt.plan().sequence:
        part = model.get_submodule(name)
        for module in part if isinstance(part, torch.nn.ModuleList) else [part]:
            passed = module(passed)
    assert torch.equal(passed, model(tokens))


@pytest.mark.parametrize(
    ("model", "plan"),
    [
        (gpt.GPT(TINY, context=16), gpt.plan()),
        (convolutional.convolutional(64), convolutional.plan()),
    ],
    ids=["gpt", "convolutional"],
)
def test_a_plan_names_modules_that_there_are(model: torch.nn.Module, plan: Any) -> None:
    modules = dict(model.named_modules())
    for pattern in plan.tensor:
        named = [name for name in modules if fnmatch.fnmatchcase(name, pattern)]
        assert named, pattern
        assert all(isinstance(modules[name], torch.nn.Linear) for name in named)
    assert all(any(isinstance(module, block) for module in modules.values()) for block in plan.blocks)


def test_heads_may_be_dealt_out_to_workers() -> None:
    """As tensor parallelism does it: half of the projections' rows on each, outputs added up."""
    torch.manual_seed(3)
    whole, vectors = gpt.Attention(8, 4), torch.randn(2, 5, 8)
    added = torch.zeros(2, 5, 8)
    for half in (slice(0, 4), slice(4, 8)):
        part = gpt.Attention(8, 4)
        for name in ("query", "key", "value"):
            mine, its = getattr(part, name), getattr(whole, name)
            mine.weight = torch.nn.Parameter(its.weight[half])
            if its.bias is not None:
                mine.bias = torch.nn.Parameter(its.bias[half])
        part.out.weight = torch.nn.Parameter(whole.out.weight[:, half])
        torch.nn.init.zeros_(part.out.bias)
        added += part(vectors)
    torch.testing.assert_close(added + whole.out.bias, whole(vectors))


def test_the_rate_rises_in_equal_parts_and_falls_to_a_tenth() -> None:
    factors = [recipe.factor(step, warm_up=0.25, steps=16) for step in range(20)]
    assert factors[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert factors[4] == 1.0
    assert factors[10] == pytest.approx(0.55)
    assert factors[16:] == pytest.approx([0.1] * 4)
    assert factors[4:] == sorted(factors[4:], reverse=True)
    assert recipe.factor(0, warm_up=0.0, steps=1) == 1.0
    assert math.isfinite(recipe.factor(3, warm_up=1.0, steps=3))


def test_decay_spares_biases_and_norms() -> None:
    model = gpt.GPT(TINY, context=16)
    decayed, spared = recipe.adamw(model, 0.1, 0.5).param_groups
    assert (decayed["weight_decay"], spared["weight_decay"]) == (0.5, 0.0)
    assert {parameter.dim() for parameter in decayed["params"]} == {2}
    assert {parameter.dim() for parameter in spared["params"]} == {1}
    assert len(decayed["params"]) + len(spared["params"]) == len(list(model.parameters()))


def test_a_text_s_targets_are_the_tokens_behind_each() -> None:
    tokens, targets = recipe.parts(torch.tensor([[3.0, 4.0, 5.0]]), torch.tensor([6]), text=True)
    assert tokens.tolist() == [[3, 4, 5]]
    assert targets.tolist() == [[4, 5, 6]]
