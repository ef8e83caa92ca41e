"""XGBoost halted between two rungs: all workers at one round, and what goes on from there to the same bytes."""

from __future__ import annotations

import itertools
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
from trainers.xgboost.rounds.halting import FASTER, LOOK_SECONDS, Looks, goes_on_exactly


@pytest.mark.parametrize(
    "hyperparameters", [{"subsample": 0.7}, {"colsample_bytree": 0.5}, {"booster": "dart", "rate_drop": 0.3}]
)
def test_with_sampling_it_does_not_and_says_so(
    tmp_path: Path, each_round: None, hyperparameters: dict[str, Any]
) -> None:
    straight = storage.read(trained(assignment(tmp_path / "straight", **hyperparameters)).checkpoint)
    assert not XGBoostTrainer().exact_from(hyperparameters)
    assert halted_and_continued(tmp_path / "halted", 9, **hyperparameters) != straight
    # From the rung, which is here the beginning, it does.
    assert storage.read(trained(assignment(tmp_path / "again", **hyperparameters)).checkpoint) == straight


@pytest.mark.parametrize("hyperparameters", [{"device": "cuda"}, {"process_type": "update"}])
def test_what_was_not_tried_goes_on_from_its_rung(hyperparameters: dict[str, Any]) -> None:
    assert not XGBoostTrainer().exact_from(hyperparameters)


def test_looks_become_rare_and_no_slow_round_makes_them_too_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [0.0], []

    def halted() -> bool:
        asked.append(now[0])
        return False

    monkeypatch.setattr("trainers.xgboost.rounds.halting.time.monotonic", lambda: now[0])
    looks = Looks(halted, rank=0, world_size=1, start=100)
    for step in range(101, 1101):
        now[0] += 0.01
        assert not looks.halt(step)
    assert len(asked) < 25
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert gaps[0] == pytest.approx(FASTER * 0.01)
    assert max(gaps) <= LOOK_SECONDS + 0.01


def test_a_hyperparameter_that_is_none_is_none() -> None:
    """As everywhere: `check_parameters` takes it, and XGBoost is told nothing."""
    assert goes_on_exactly({"subsample": None, "booster": None, "device": None, "process_type": None})
    assert not goes_on_exactly({"subsample": 0.5, "booster": None})
