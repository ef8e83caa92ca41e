"""Forecasts of memory: activations are counted as autograd keeps them, and what does not fit is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

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
    with pytest.raises(TrialError, match=r"Sequential needs about 12.*MB: .* of activations, and 1 MB are free"):
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
