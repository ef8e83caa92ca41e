"""Whole tuning jobs whose trials share a model in different ways, on real gangs of one size."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import CategoricalParameter, ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.transformer import train_text
from trainers import TorchTrainer

LAYOUTS = ["replicate=2", "shard=2", "tensor=2", "pipeline=2"]
ROWS = {"train": (np.zeros((4, 2), np.float32), np.zeros(4, np.float32))}
"""The function has rows of its own."""


def job(name: str, ranges: dict[str, Any], strategy: str, **options: Any) -> HyperparameterTuner:
    tuner = HyperparameterTuner(
        TorchTrainer(
            train_text,
            scaling=ScalingConfig(num_workers=2),
            hyperparameters={"global_batch_size": 8, "rows": 20, "epochs": 2},
            metrics=["train:loss"],
            report_timeout_s=120,
        ),
        "train:loss",
        ranges,
        objective_type="Minimize",
        strategy=strategy,
        max_parallel_jobs=1,
        random_seed=5,
        console=Console(file=io.StringIO()),
        **options,
    )
    tuner.fit(ROWS, job_name=name)
    return tuner


def test_all_layouts_come_to_the_same_on_one_gang(ray_cluster: None) -> None:
    job("every-layout", {"layout": CategoricalParameter(LAYOUTS)}, "Grid")
    with Store() as store:
        rows = store.trials("every-layout")
    assert {row.status for row in rows} == {"Completed"}, [row.failure for row in rows]
    losses = [row.objective for row in rows]
    assert len(losses) == 5, "of every layout, and of the trial that is not tuned"
    assert losses == pytest.approx([losses[0]] * 5, abs=1e-10)


def test_trials_of_all_layouts_are_paused_and_go_on(ray_cluster: None) -> None:
    config = HyperbandStrategyConfig(max_resource=3, min_resource=1, suggestions="random")
    tuner = job(
        "paused-layouts",
        {"layout": CategoricalParameter(LAYOUTS[1:]), "clip": ContinuousParameter(0.1, 1.0)},
        "Hyperband",
        strategy_config=StrategyConfig(config),
        max_jobs=6,
    )
    with Store() as store:
        rows = store.trials("paused-layouts")
    assert {row.status for row in rows} == {"Completed", "Stopped"}, [row.failure for row in rows]
    state = tuner.best_estimator().model()
    assert "blocks.3.down.weight" in state["model"]
    assert len(state["optimizer"]["state"]) == len(state["model"])
