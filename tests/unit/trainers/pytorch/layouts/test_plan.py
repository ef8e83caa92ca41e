"""Blocks of a model that a plan does not name."""

from __future__ import annotations

import pytest
from torch import nn

from trainers import ModelPlan
from trainers.pytorch.layouts.plan import blocks_of


class Stack(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))
        self.out = nn.Linear(2, 2)


def encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 2, enable_nested_tensor=False)


def names(model: nn.Module, plan: ModelPlan | None = None) -> list[str]:
    name_of = {module: name for name, module in model.named_modules()}
    return [name_of[block] for block in blocks_of(model, plan or ModelPlan())]


@pytest.mark.parametrize(
    ("model", "blocks"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)), ["0", "2"]),
        (nn.Sequential(nn.Embedding(3, 2), Stack(nn.Linear(2, 2), nn.Linear(2, 2))), ["0", "1.layers.0", "1.layers.1"]),
        (nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Linear(2, 1)), ["0.0", "0.1", "1"]),
        (Stack(Experts(), Experts()), ["layers.0", "layers.1"]),
        (Stack(nn.Sequential(nn.Linear(2, 2), nn.ReLU())), ["layers.0"]),
        (nn.Linear(2, 2), []),
        (
            nn.Sequential(
                nn.Embedding(3, 8),
                nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 2, enable_nested_tensor=False),
            ),
            ["0", "1.layers.0", "1.layers.1"],
        ),
    ],
    ids=["layers", "a stack in a sequence", "sequences", "experts", "sequences in a list", "none", "an encoder"],
)
def test_members_of_lists_are_blocks(model: nn.Module, blocks: list[str]) -> None:
    assert names(model) == blocks


def test_classes_that_are_named_are_blocks_wherever_they_are() -> None:
    assert names(Stack(Experts()), ModelPlan(blocks=(nn.Linear,))) == [
        "layers.0.experts.0",
        "layers.0.experts.1",
        "layers.0.out",
    ]
