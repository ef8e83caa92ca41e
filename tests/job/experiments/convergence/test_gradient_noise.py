"""Gradients made noisier, and their noise measured: against the exact covariance of a small linear model."""

from __future__ import annotations

from pathlib import Path

from experiments.convergence.gradient_noise import NOISE, SIGNAL, watched
from tests.support.experiments.convergence.gradient_noise import (
    HERE,
    noisy,  # noqa: F401  # Fixtures.
)
from trainers import ParameterServerTrainer
from trainers.datasets import load


def test_watching_alone_changes_no_bit(tmp_path: Path) -> None:
    """Four asynchronous workers of the published network, whose batches are drawn at random."""
    from experiments.shared.network import channels, train

    given = {"lr": 0.05, "momentum": 0.5, "per_worker_batch_size": 50, "epochs": 2, "mode": "async", "num_workers": 4}
    plain, seen, noisy = (
        ParameterServerTrainer(function, scaling=HERE, hyperparameters=given).fit(
            channels(load("digits")), storage_path=str(tmp_path), seed=5
        )
        for function in (train, watched(train), watched(train, times=4.0))
    )
    for before, after in zip(plain.reports, seen.reports, strict=True):
        assert after.metrics == {**before.metrics, SIGNAL: after.metrics[SIGNAL], NOISE: after.metrics[NOISE]}
        assert after.metrics[NOISE] > 0
    assert noisy.metrics["validation:loss"] != seen.metrics["validation:loss"]
