"""Blocks of a model: which they are, and their activations computed again with the same bits."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from tests.support.allreduce import only, program
from tests.support.networks import assignment, close, small_buckets, state
from tests.support.process_gang import ProcessGang, serve_alone
from tests.support.refusals import mentions
from trainers import ModelPlan
from trainers.pytorch.layouts.recomputing import recompute


class Block(nn.Module):
    def __init__(self, width: int, norm: type[nn.Module] = nn.BatchNorm1d) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.3), nn.Linear(4 * width, width)
        )
        self.norm = norm(width)

    def forward(self, rows: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return rows + scale * self.layers(self.norm(rows))


class Deep(nn.Module):
    def __init__(self, depth: int = 4, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(6, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.last = nn.Linear(width, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = self.first(rows)
        for block in self.blocks:
            rows = block(rows, scale=0.5)
        return self.last(rows)


def test_a_model_without_blocks_is_refused(tmp_path):
    def function(context) -> None:
        context.prepare_model(nn.Linear(6, 2), ModelPlan(recompute=True))

    [error] = serve_alone(program(function)(), assignment(tmp_path))
    mentions(str(error), "recompute", "Linear", "ModuleList", "Sequential", "ModelPlan(blocks=...)")


def pass_through(model: nn.Module, rows: torch.Tensor) -> tuple[dict, int]:
    """Gradients, buffers and output of a pass, and the bytes of activations that it kept."""
    held: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(3)
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(rows)
    weights = sum(part.nbytes for part in model.parameters())
    output.square().sum().backward()
    found = {name: part.grad for name, part in model.named_parameters()} | dict(model.named_buffers())
    return {**found, "output": output.detach(), "next": torch.rand(3)}, sum(held.values()) - weights


def test_activations_that_are_computed_again_take_less_memory_and_change_no_bit():
    torch.manual_seed(1)
    plain = Deep(depth=8)
    again = copy.deepcopy(plain)
    recompute([*again.blocks])
    rows = torch.randn(64, 6)
    expected, kept = pass_through(plain, rows)
    found, less = pass_through(again, rows)
    close(found, expected, 0.0)
    assert less < 0.2 * kept
    assert again.state_dict().keys() == plain.state_dict().keys()
    with torch.no_grad():
        assert torch.equal(again.eval()(rows), plain.eval()(rows))


def test_a_copy_of_a_model_recomputes_its_own_blocks():
    model = Deep(depth=1)
    recompute([*model.blocks])
    other = copy.deepcopy(model)
    with torch.no_grad():
        for part in model.parameters():
            part.zero_()
    other(torch.randn(8, 6)).sum().backward()
    assert other.blocks[0].layers[0].weight.grad.count_nonzero()
    assert model.blocks[0].layers[0].weight.grad is None


def train(context) -> None:
    words = context.hyperparameters
    model = context.prepare_model(Deep(), ModelPlan(recompute=words["recompute"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in context.epochs():
        for features, labels in context.prepare_data("train", labels=torch.int64):
            context.step(functional.cross_entropy(model(features), labels), optimizer)
        context.report({}, checkpoint={"model": model.state_dict()})


@pytest.mark.process
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_a_gang_trains_the_same_bits_with_it(gang: ProcessGang, tmp_path, precision):
    words = {"per_worker_batch_size": 4, "precision": precision, "gradient_accumulation_steps": 2}
    trials = [assignment(tmp_path, name=str(again), **words, recompute=again) for again in (False, True)]
    [ranks, *_] = gang.run(program(train, 96), *trials, before=small_buckets)
    plain, again = ranks
    close(state(again)["model"], state(plain)["model"], 0.0)
    only([[plain], [again]])


@pytest.mark.long
@pytest.mark.system
def test_compiled_blocks_are_computed_again_as_well(tmp_path):
    words = {"per_worker_batch_size": 32, "precision": "fp32"}
    trials = [assignment(tmp_path, stop=1, name=str(again), **words, recompute=again) for again in (False, True)]
    plain, again = serve_alone(program(train, compile=True)(), *trials)
    close(state(again)["model"], state(plain)["model"], 1e-5)
