"""Blocks of a model: which they are, and their activations computed again with the same bits."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from tests.support.networks import close
from tests.support.trainers.pytorch.layouts.recomputing import Deep
from trainers.pytorch.layouts.recomputing import recompute


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
