"""XGBoost halted between two rungs: all workers at one round, and what goes on from there to the same bytes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig

from tests.support.assignments import assignment as first
from tests.support.gangs import TRAIN, VALIDATION
from tests.support.process_gang import ProcessGang, serve_alone
from trainers import Channel, XGBoostTrainer, storage
from trainers.gangs.messages import Assignment, Segment
from trainers.xgboost.rounds.halting import FASTER, LOOK_SECONDS, Looks, goes_on_exactly

PLAIN = {"objective": "binary:logistic", "eval_metric": "auc", "verbosity": 0}
STOP = 20


def program() -> Any:
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=PLAIN)
    arrays = {"train": TRAIN[:600], "validation": VALIDATION[:200]}
    return trainer.program({name: Channel.of(array, name=name).place(0) for name, array in arrays.items()})


def assignment(folder: Path, **hyperparameters: Any) -> Assignment:
    return first(hyperparameters={**PLAIN, **hyperparameters}, stop=STOP, save_to=str(folder / f"{STOP:06d}.ubj"))


def look_each_round() -> None:
    from trainers.xgboost.rounds import halting as xgboost_halting

    xgboost_halting.LOOK_SECONDS = 0.0


@pytest.fixture
def each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.xgboost.rounds.halting.LOOK_SECONDS", 0.0)


def trained(order: Assignment) -> Segment:
    [segment] = serve_alone(program(), order)
    assert isinstance(segment, Segment), segment
    return segment


def halted_and_continued(folder: Path, halt_at: int, **hyperparameters: Any) -> bytes:
    first = trained(assignment(folder, halt_at=halt_at, **hyperparameters))
    assert first.reached == len(first.reports) == halt_at - 1
    assert first.checkpoint == str(folder / f"{halt_at - 1:06d}.ubj")
    later = replace(assignment(folder, **hyperparameters), start=first.reached, checkpoint=first.checkpoint)
    return storage.read(trained(later).checkpoint)


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


@pytest.mark.process
def test_all_workers_halt_at_one_round(gang: ProcessGang, tmp_path: Path) -> None:
    straight, halted = assignment(tmp_path / "straight"), assignment(tmp_path / "halted", halt_at=8)
    answers = gang.run(program, straight, halted, before=look_each_round)
    whole, short = answers[0]
    assert [segment.reached for _, segment in answers] == [7, 7, 7]
    assert short.reports == whole.reports[:7]
    later = replace(assignment(tmp_path / "halted"), start=7, checkpoint=short.checkpoint)
    [rest] = gang.run(program, later, before=look_each_round)[0]
    assert storage.read(rest.checkpoint) == storage.read(whole.checkpoint)


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
