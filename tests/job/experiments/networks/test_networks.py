"""The GPT and the convolutional network: what they compute, how workers may share them, and that they learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ray.train import ScalingConfig

from experiments.networks import gpt, recipe
from experiments.networks.training import GPT_NAME, IMAGES_NAME, METRICS, TEXT_METRICS
from tests.support.refusals import refuses
from trainers import TorchTrainer
from trainers.datasets import Dataset, load

TINY = gpt.SIZES["tiny"]


@pytest.fixture(scope="module")
def text() -> Dataset:
    return load("python-stdlib")


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
