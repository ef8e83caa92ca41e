"""Hyperparameters that are secrets by their names, which the record would keep and show, are warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.jobs.build import warnings
from tests.support.refusals import mentions
from tests.support.script_job import ScriptJob
from trainers import ScalingConfig, ScriptTrainer


@pytest.mark.parametrize("name", ["hub_token", "TOKEN", "db-password", "aws_secret_access_key", "api_key", "apikey"])
def test_a_secret_among_static_hyperparameters_is_warned_of(tmp_path: Path, name: str) -> None:
    job = ScriptJob(tmp_path, static={name: "planted"})
    [told] = [each for each in warnings(job.tuner.settings) if "secret" in each]
    mentions(told, f"'{name}'", "record", "file", "variable")
    assert "planted" not in told


@pytest.mark.parametrize(("name", "value"), [("max_token", 100), ("tokens", "a,b"), ("tokenizer", "bpe"), ("key", "a")])
def test_others_are_not(tmp_path: Path, name: str, value: object) -> None:
    assert not [each for each in warnings(ScriptJob(tmp_path, static={name: value}).tuner.settings) if "secret" in each]


def test_a_secret_among_a_program_s_variables_is_warned_of(tmp_path: Path) -> None:
    job = ScriptJob(tmp_path)
    job.tuner.estimator = ScriptTrainer(
        "train.py",
        source_dir=tmp_path / "source",
        scaling=ScalingConfig(num_workers=0),
        hyperparameters={"epochs": 9},
        environment={"WANDB_API_KEY": "planted", "NCCL_DEBUG": "INFO"},
    )
    [told] = [each for each in warnings(job.tuner.settings) if "secret" in each]
    mentions(told, "WANDB_API_KEY", "record", "file")
    assert "planted" not in told
