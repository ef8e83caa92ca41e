"""The command or call that resumes a job, by what its record holds."""

from __future__ import annotations

from typing import Any

import pytest

from hpo.jobs.resuming import how_to_resume
from trainers import ScriptTrainer, XGBoostTrainer

READ_AGAIN = {"train": {"open": {"paths": ["train.csv"]}}}
IN_MEMORY: dict[str, Any] = {"train": {"open": {}}}


def spec(train_loop: str = "", **changes: Any) -> dict[str, Any]:
    """A job's spec, of XGBoost, or of a training function by its name."""
    trainer = XGBoostTrainer(hyperparameters={"num_round": 3}).to_json()
    if train_loop:
        options = {"train_loop": train_loop}
        trainer = {**trainer, "trainer": "TorchTrainer", "options": options, "code": options}
    return {"estimator": trainer, "strategy": "Hyperband", "strategy_config": {}, "inputs": READ_AGAIN, **changes}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (spec(), "hpo resume churn"),
        (spec(inputs={}), "hpo resume churn"),
        (spec("training:train"), "hpo resume churn --allow-code"),
        (spec(inputs=IN_MEMORY), "HyperparameterTuner.attach('churn').resume(inputs=...)"),
        (spec("__main__:train"), "HyperparameterTuner.attach('churn', allow_code=True).resume()"),
        (spec("training:make.<locals>.train"), ""),
        (spec("__main__:<lambda>"), ""),
        (spec(strategy_config={"searcher": {"type": "optuna.samplers:TPESampler", "arguments": None}}), ""),
        (
            spec(strategy_config={"searcher": {"type": "optuna.samplers:TPESampler", "arguments": {}}}),
            "hpo resume churn",
        ),
    ],
)
def test_what_can_be_resumed_and_how(told: dict[str, Any], expected: str) -> None:
    assert how_to_resume("churn", told, None) == expected


def test_a_store_that_is_not_the_default_is_named_and_a_password_is_not() -> None:
    assert how_to_resume("churn", spec(), "sqlite:///my jobs.db").endswith("--store 'sqlite:///my jobs.db'")
    shown = how_to_resume("churn", spec(), "postgresql://me:planted@host/db")
    assert "planted" not in shown
    assert "WARMBAND_STORE" in shown


def test_a_limit_that_was_reached_is_raised_by_the_command() -> None:
    reason = "max_cost reached: 2.00 EUR of 2 EUR"
    assert "--set cost.max_cost=" in how_to_resume("churn", spec(), None, reason=reason)
    reason = "max_runtime_in_seconds reached: 60.1 s of 60 s"
    assert "--set tuning.max_runtime_in_seconds=" in how_to_resume("churn", spec(), None, reason=reason)
    python = how_to_resume("churn", spec(inputs=IN_MEMORY), None, training=True, reason=reason)
    assert python == "TrainingJob.attach('churn').resume(inputs=..., max_runtime_in_seconds=...)"


def test_a_program_is_code_that_has_to_be_allowed() -> None:
    trainer = ScriptTrainer("train.py").to_json()
    assert how_to_resume("churn", spec(estimator=trainer), None) == "hpo resume churn --allow-code"
