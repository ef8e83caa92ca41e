"""Forecasts of memory: activations are counted as autograd keeps them, and what does not fit is refused."""

from __future__ import annotations

import random
from collections import namedtuple
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.support.refusals import refuses
from trainers import TrialError
from trainers.pytorch.layouts import forecast
from trainers.pytorch.layouts.forecast import Forecast, activations, free_memory, without_data
from trainers.pytorch.layouts.recomputing import recompute

CPU = torch.device("cpu")


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10))


def kept_for_real(model: nn.Module, inputs: torch.Tensor) -> int:
    """Bytes that autograd keeps of a real forward pass, beside the parameters."""
    own = {parameter.data_ptr() for parameter in model.parameters()}
    kept: dict[int, tuple[torch.Tensor, int]] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor, tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = model(inputs)
    del output
    return sum(size for _, size in kept.values())


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (network(), (64, 100)),
        (
            nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 2)),
            (16, 3, 8, 8),
        ),
        (nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True), (4, 12, 32)),
    ],
)
def test_activations_are_those_that_autograd_keeps(model: nn.Module, shape: tuple[int, ...]) -> None:
    inputs = torch.randn(shape)
    found = activations(without_data(model), ((inputs,), {}))
    assert found == pytest.approx(kept_for_real(model, inputs), rel=0.05)


def test_recomputed_blocks_keep_less() -> None:
    model = nn.Sequential(*(network() for _ in range(3)), nn.Linear(10, 1))
    for block in model[1:3]:
        block[0] = nn.Linear(10, 200)
    inputs = torch.randn(64, 100)
    before = activations(without_data(model), ((inputs,), {}))
    recompute([*model[:3]])
    after = activations(without_data(model), ((inputs,), {}))
    assert before is not None
    assert after is not None
    assert after < 0.4 * before


def test_a_model_that_asks_for_values_is_not_forecast() -> None:
    class Asks(nn.Module):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return rows * float(rows.sum())

    assert activations(without_data(Asks()), ((torch.ones(2),), {})) is None


def test_what_does_not_fit_is_refused_before_it_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "free_memory", lambda *_: 1_000_000)
    model = network()
    Forecast(model, CPU)
    with torch.no_grad():
        model(torch.ones(10_000, 100))  # An evaluation keeps nothing.
    with refuses(
        TrialError,
        field=("Sequential", "12.2 MB", "parameters", "gradients", "activations"),
        value="1 MB",
        remedy=("ModelPlan(recompute=True)", "shard=2"),
    ):
        model(torch.ones(10_000, 100))


def test_what_fits_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(forecast, "free_memory", lambda *_: asked.append(1) or 10_000_000)
    model = network()
    Forecast(model, CPU)
    for _ in range(3):
        model(torch.ones(64, 100)).sum().backward()
    assert asked == [1]
    assert not model._forward_pre_hooks


def test_free_memory_is_shared_by_the_workers_of_a_node() -> None:
    assert free_memory(CPU, 4) == pytest.approx(free_memory(CPU) / 4, rel=0.2)


def test_a_forecast_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a cache, nor in random numbers, nor in what the model is called with."""
    asked: list[bool] = []
    monkeypatch.setattr(forecast, "_SURELY_SMALL", 0.0)

    @lru_cache
    def mask() -> torch.Tensor:
        return torch.ones(2)

    class Traces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, rows: torch.Tensor, memory: object = None) -> torch.Tensor:
            asked.append(rows.is_meta)
            random.random()
            found = self.layer(rows)
            if memory is not None:
                memory.seen.append(found)
            return found * mask()

    class Memory:
        def __init__(self) -> None:
            self.seen: list[torch.Tensor] = []

    random.seed(3)
    model = Traces()
    Forecast(model, CPU)
    model(torch.ones(4, 3))
    drawn = random.getstate()
    random.seed(3)
    random.random()
    assert random.getstate() == drawn
    assert not mask().is_meta
    Forecast(model, CPU)
    memory = Memory()
    model(torch.ones(4, 3), memory)
    assert len(memory.seen) == 1
    assert asked == [True, False, False]


def test_named_tuples_of_tensors_are_inputs_like_others() -> None:
    Rows = namedtuple("Rows", "first second")

    class Takes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, rows: Rows) -> torch.Tensor:
            return self.layer(rows.first)

    found = activations(without_data(Takes()), ((Rows(torch.ones(4, 3), None),), {}))
    assert found == 4 * 3 * 4


def test_parameters_that_are_not_trained_have_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(1000, 1000), nn.Linear(1000, 1))
    model[0].requires_grad_(False)
    monkeypatch.setattr(forecast, "free_memory", lambda *_: 1_000_000)
    Forecast(model, CPU)
    model(torch.ones(4, 1000))


def test_numbers_of_two_bytes_take_half_of_the_activations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "free_memory", lambda *_: 8_000_000)
    for low in (torch.bfloat16, None):
        model = network()
        Forecast(model, CPU, low=low)
        if low is None:
            with refuses(TrialError, field=("Sequential", "activations"), value="8 MB", remedy="shard=2"):
                model(torch.ones(7000, 100))
        else:
            model(torch.ones(7000, 100))


def test_files_in_a_containers_page_cache_are_free_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forecast, "_CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("990000\n")
    (tmp_path / "memory.stat").write_text("anon 90000\nactive_file 300000\ninactive_file 600000\n")
    assert free_memory(CPU) == 910_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(CPU) > 1_000_000
