"""The GPT and the convolutional network: what they compute, how workers may share them, and that they learn."""

from __future__ import annotations

import fnmatch
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig

from experiments.networks import convolutional, gpt, recipe
from experiments.networks.training import GPT_NAME, IMAGES_NAME, METRICS, TEXT_METRICS
from tests.support.refusals import refuses
from trainers import TorchTrainer
from trainers.datasets import Dataset, load

TINY = gpt.SIZES["tiny"]


@pytest.fixture(scope="module")
def text() -> Dataset:
    return load("python-stdlib")


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


def fit(
    name: str, metrics: tuple[str, ...], data: Dataset, folder: Path, units: int, most: int = 512, **changed: Any
) -> Any:
    given = {
        "lr": 0.01,
        "size": "tiny",
        "units": 3,
        "rows_per_unit": 128,
        "validation_rows": 32,
        "global_batch_size": 16,
        **changed,
    }
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    trainer = TorchTrainer(name, scaling=scaling, hyperparameters={**given, "epochs": units}, metrics=metrics)
    rows = {part: tuple(array[:most] for array in getattr(data, part)) for part in ("train", "validation")}
    return trainer.fit(rows, storage_path=str(folder), seed=7)


def test_the_gpt_learns_and_its_loss_is_that_of_every_byte(text: Dataset, tmp_path: Path) -> None:
    trained = fit(GPT_NAME, TEXT_METRICS, text, tmp_path, 3)
    losses = [report.metrics["validation:loss"] for report in trained.reports]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 3.9  # Of bytes drawn evenly, log 256 = 5.5.
    assert trained.metrics["validation:perplexity"] == pytest.approx(math.exp(losses[-1]))
    model = gpt.GPT(TINY, context=128)
    model.load_state_dict(trained.model()["model"])
    features, labels = (torch.from_numpy(array[:32]) for array in text.validation)
    tokens, targets = recipe.parts(features, labels.long(), text=True)
    with torch.no_grad():
        assert recipe.loss_of(model(tokens), targets).item() == pytest.approx(losses[-1], rel=1e-5)


def test_the_convolutional_network_learns(tmp_path: Path) -> None:
    trained = fit(IMAGES_NAME, METRICS, load("digits"), tmp_path, 3, 1200, rows_per_unit=960, validation_rows=200)
    assert trained.metrics["validation:accuracy"] > 0.9
    assert trained.metrics["train:loss"] < 0.5


def test_what_is_left_of_a_batch_at_the_end_of_a_pass_is_an_update_too(text: Dataset, tmp_path: Path) -> None:
    """40 rows in batches of 16, or of two times 8: each pass has an update of 8 rows, and units go on behind it."""
    whole = fit(GPT_NAME, TEXT_METRICS, text, tmp_path / "a", 2, 40, rows_per_unit=64)
    parts = fit(GPT_NAME, TEXT_METRICS, text, tmp_path / "b", 2, 40, rows_per_unit=64, gradient_accumulation_steps=2)
    for mine, its in zip(whole.reports, parts.reports, strict=True):
        assert mine.metrics["validation:loss"] == pytest.approx(its.metrics["validation:loss"], rel=1e-4)


def test_fewer_rows_than_workers_to_validate_on_are_refused(text: Dataset, tmp_path: Path) -> None:
    with refuses(Exception, field=("rows", "workers"), value=0, remedy="1"):
        fit(GPT_NAME, TEXT_METRICS, text, tmp_path, 1, validation_rows=0)


def test_the_same_rows_come_in_the_same_order_each_time(text: Dataset) -> None:
    again = load("python-stdlib")
    assert np.array_equal(text.train[0][:200], again.train[0][:200])
