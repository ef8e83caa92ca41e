"""XGBoost halted between two rungs: all workers at one round, and what goes on from there to the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.xgboost.halting import (
    assignment,
    each_round,  # noqa: F401  # Fixtures.
    halted_and_continued,
    trained,
)
from trainers import XGBoostTrainer, storage


@pytest.mark.parametrize(
    "hyperparameters",
    [
        {},
        {"eta": 0.05, "max_depth": 9, "alpha": 0.5, "max_delta_step": 1},
        {"tree_method": "approx"},
        {"tree_method": "exact"},
        {"grow_policy": "lossguide", "max_leaves": 20},
        {"num_parallel_tree": 3},
        {"objective": "reg:absoluteerror", "eval_metric": "mae"},
    ],
)
def test_without_sampling_it_goes_on_from_any_round_to_the_same_bytes(
    tmp_path: Path, each_round: None, hyperparameters: dict[str, Any]
) -> None:
    straight = storage.read(trained(assignment(tmp_path / "straight", **hyperparameters)).checkpoint)
    assert XGBoostTrainer().exact_from(hyperparameters)
    for halt_at in (2, 9):
        assert halted_and_continued(tmp_path / str(halt_at), halt_at, **hyperparameters) == straight
