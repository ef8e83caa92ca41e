"""Gradients made noisier, and their noise measured: against the exact covariance of a small linear model."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import ray.cloudpickle
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812  # as everybody calls it

from experiments.convergence.gradient_noise import EVERY, NOISE, PART, SIGNAL, estimates, multipliers, parts_of, watched
from tests.support.experiments.convergence.gradient_noise import (
    FEATURES,
    LABELS,
    ROWS,
    STEPS,
    fitted,
    linear,
    noisy,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import refuses
from trainers import TrainContext
from trainers.result import TrainingResult


def exact() -> tuple[Tensor, Tensor]:
    """The gradient of the mean squared error of the whole batch, and the sample covariance of one example's."""
    each = 2 * (FEATURES @ linear().weight.detach()[0] - LABELS)[:, None] * FEATURES
    return each.mean(0), torch.cov(each.T)


def test_added_noise_has_the_mean_and_the_covariance_of_the_smaller_batch(noisy: tuple[Tensor, Any]) -> None:
    found, (mean, each) = noisy[0], exact()
    assert len(found) == STEPS
    # A gradient of n rows drawn from many has covariance C / n, and one of n / 4 has 4 C / n: 3 C / n was added.
    added = 3 * each / ROWS
    error = (torch.diag(added) / STEPS).sqrt()
    assert ((found.mean(0) - mean).abs() < 4 * error).all()
    assert torch.linalg.matrix_norm(torch.cov(found.T) - added) < 0.06 * torch.linalg.matrix_norm(added)


def test_the_measured_noise_scale_is_that_of_the_rows(noisy: tuple[Tensor, TrainingResult]) -> None:
    """Of the gradients without the noise that is added: up to what so many parts drawn at random can differ by."""
    metrics, error = noisy[1].metrics, torch.tensor(every_part()).std(0) / math.sqrt(STEPS / EVERY)
    mean, each = exact()
    assert metrics[NOISE] == pytest.approx(float(torch.trace(each)), abs=3 * float(error[1]))
    signal = float(mean.square().sum() - torch.trace(each) / ROWS)
    assert metrics[SIGNAL] == pytest.approx(signal, abs=3 * float(error[0]))
    assert 3 * error[1] < torch.trace(each) / 2
    assert metrics["validation:loss"] == 0


def every_part() -> list[tuple[float, float]]:
    """The estimates from every part of the rows that there is."""
    each = 2 * (FEATURES @ linear().weight.detach()[0] - LABELS)[:, None] * FEATURES
    parts = [each[list(chosen)].mean(0) for chosen in itertools.combinations(range(ROWS), ROWS // PART)]
    whole = float(each.mean(0).square().sum())
    return [estimates(ROWS, whole, float(part.square().sum())) for part in parts]


def test_the_estimates_are_unbiased_over_every_part_there_is() -> None:
    found, (mean, covariance) = every_part(), exact()
    signal, noise = (sum(values) / len(found) for values in zip(*found, strict=True))
    assert noise == pytest.approx(float(torch.trace(covariance)))
    assert signal == pytest.approx(float(mean.square().sum() - torch.trace(covariance) / ROWS))


@given(st.integers(1, 500), st.floats(1, 64), st.integers(0, 2**32))
def test_numbers_to_multiply_by_leave_the_mean_as_it_is(rows: int, times: float, seed: int) -> None:
    found = multipliers(rows, times, torch.Generator().manual_seed(seed))
    assert len(found) == rows
    assert float(found.double().mean()) == pytest.approx(1, abs=1e-4)
    if times == 1 or rows == 1:
        assert torch.equal(found, torch.ones(rows))


@given(st.integers(PART, 500), st.integers(0, 2**32))
def test_each_part_counts_as_the_whole_and_shares_no_row(rows: int, seed: int) -> None:
    found = parts_of(rows, torch.Generator().manual_seed(seed))
    assert (found > 0).sum(1).tolist() == [rows // PART] * PART
    assert (found > 0).sum(0).max() == 1
    assert found.sum(1).tolist() == pytest.approx([rows] * PART, rel=1e-5)


class Pair(nn.Module):
    """A model that gives two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = linear()

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        found = self.inside(rows)
        return found, found.square()


@pytest.mark.parametrize("calls", [1, 2])
def test_of_what_gives_no_row_an_example_once_a_step_nothing_is_measured(calls: int, tmp_path: Path) -> None:
    def train(context: TrainContext) -> None:
        model = context.prepare_model(Pair() if calls == 1 else linear())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            outputs = [model(FEATURES) for _ in range(calls)]
            context.step(sum(one.mean() for output in outputs for one in output), optimizer)
            context.report({"validation:loss": 0.0}, checkpoint={})

    assert fitted(watched(train, times=2.0), tmp_path).metrics == {"validation:loss": 0.0}


def test_rows_that_are_evaluated_with_gradients_are_no_step(tmp_path: Path) -> None:
    def train(context: TrainContext) -> None:
        model = context.prepare_model(linear())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in context.epochs():
            context.step(F.mse_loss(model(FEATURES)[:, 0], LABELS), optimizer)
            model(FEATURES)
            context.report({"validation:loss": 0.0}, checkpoint={})

    assert set(fitted(watched(train), tmp_path).metrics) == {"validation:loss", SIGNAL, NOISE}


@pytest.mark.parametrize("times", [0.5, float("nan"), float("inf")])
def test_noise_cannot_be_taken_away(times: float) -> None:
    with refuses(ValueError, field="times", value=times, remedy="1"):
        watched(lambda context: None, times)


def test_a_watched_function_goes_to_other_processes() -> None:
    from experiments.shared.network import train

    there = pickle.loads(ray.cloudpickle.dumps(watched(train, times=2.0)))
    assert there.__qualname__ == "train"
    assert there is not train
