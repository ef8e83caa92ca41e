"""What a trial sets for the whole process holds for that trial."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig

from tests.support.networks import assignment, data, state
from tests.support.process_gang import serve_alone
from trainers import ParameterServerTrainer, TorchTrainer
from trainers.channels import Channel

HERE = ScalingConfig(num_workers=0)


def turns() -> None:
    """Every switch that there is, away from where it stands at first."""
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_num_threads(3)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    torch.set_float32_matmul_precision("medium")
    torch.set_flush_denormal(True)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.mkldnn.enabled = False
    torch.utils.deterministic.fill_uninitialized_memory = False
    np.seterr(all="raise")


def turned() -> dict:
    return {
        "dtype": str(torch.ones(1, device="cpu").dtype),
        "device": str(torch.get_default_device()),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warn": torch.is_deterministic_algorithms_warn_only_enabled(),
        "anomalies": torch.is_anomaly_enabled(),
        "nan": torch.is_anomaly_check_nan_enabled(),
        "precision": torch.get_float32_matmul_precision(),
        "flushed": float(torch.tensor(1e-310, dtype=torch.float64, device="cpu") * 1) == 0.0,
        "benchmark": torch.backends.cudnn.benchmark,
        "cudnn": torch.backends.cudnn.deterministic,
        "mkldnn": torch.backends.mkldnn.enabled,
        "filled": torch.utils.deterministic.fill_uninitialized_memory,
        "numpy": np.geterr(),
    }


def train(context) -> None:
    found = turned()
    turns()
    for _ in context.epochs():
        context.report({}, checkpoint={"found": found, "turned": turned()})
        if context.hyperparameters.get("fails"):
            raise ValueError("with the switches turned")


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_next_trial_finds_everything_as_the_first_did(tmp_path, workers):
    made = ParameterServerTrainer if workers else TorchTrainer
    words = {"num_workers": workers} if workers else {}
    before = turned()
    program = made(train, scaling=HERE).program({"train": Channel.of(data(), name="train").place(0)})
    first, failed, second = serve_alone(
        program,
        assignment(tmp_path, name="first", **words),
        assignment(tmp_path, name="failed", **words, fails=True),
        assignment(tmp_path, name="second", **words),
    )
    assert "with the switches turned" in str(failed)
    assert turned() == before
    ours, turned_there = state(first)["found"], state(first)["turned"]
    assert state(second)["found"] == ours
    assert {name for name in before if turned_there[name] == ours[name]} == set()
