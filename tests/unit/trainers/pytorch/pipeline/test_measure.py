"""Costs of a model's members: seconds, and what a stage has to hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.support.pipelines import text, transformer
from tests.support.transformer import PLAN
from trainers.pytorch.pipeline.measure import costs, fits_in
from trainers.pytorch.pipeline.structure import sequence_of

CPU = torch.device("cpu")


class Timed(nn.Module):
    """Takes so many seconds of a clock of the test's."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        super().__init__()
        self.layer, self._clock, self._seconds = nn.Linear(3, 3), clock, seconds

    def forward(self, x: Tensor) -> Tensor:
        if not x.is_meta:
            self._clock[0] += self._seconds
        return self.layer(x)


def test_seconds_are_those_of_each_member():
    now = [0.0]
    model = nn.Sequential(Timed(now, 3.0), nn.ReLU(inplace=True), Timed(now, 5.0))
    found = costs(model, ("0", "1", "2"), torch.ones(2, 3), CPU, lambda: now[0])
    assert [cost.seconds for cost in found] == [3.0, 0.0, 5.0]


def test_what_is_kept_counts_activations_and_no_parameters():
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 7)).double()
    first, second = costs(model, ("0", "1"), torch.ones(2, 3).double(), CPU, lambda: 0.0)
    assert (first.kept, second.kept) == (2 * 3 * 8, 2 * 5 * 8)


def test_a_model_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    costs(model, ("0", "1"), torch.randn(4, 3), CPU, lambda: 0.0)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_transformer_is_measured_on_its_tokens():
    model = transformer()
    found = costs(model, sequence_of(model, PLAN.sequence), text(4)[0], CPU, lambda: 0.0)
    assert len(found) == 7
    assert all(cost.kept > 0 for cost in found[1:])


@pytest.mark.parametrize(("keeps_all", "held"), [(True, 8), (False, 3)])
def test_a_stage_holds_parameters_and_the_activations_in_flight(keeps_all: bool, held: int):
    """4 times its parameters' bytes, and those of all micro-batches, or of as many as it is stages from the end."""
    needs = 4 * (10 + 20) + held * (5 + 6)
    for memory, expected in ((needs, True), (needs - 1, False)):
        fits = fits_in(memory, [10, 20, 30], [5, 6, 7], 3, 8, keeps_all=keeps_all)
        assert fits(0, 0, 2) is expected
