"""`ScriptTrainer`: what it refuses, what its record holds, and what it sends to workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trainers import ScalingConfig, ScriptTrainer
from trainers.errors import ConfigurationError
from trainers.registry import trainer_from_json
from trainers.script.folders import packed, unpack


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"launcher": "torchrn"}, "launcher is 'torchrn'; .*did you mean"),
        ({"launcher": "deepspeed {scrpt}"}, "scrpt"),
        ({"processes_per_worker": 2}, "processes_per_worker is 2, and launcher 'python' starts one process a worker"),
        ({"launcher": "tensorflow", "parameter_servers": 2}, "parameter_servers is 2 with 1 worker"),
        ({"metric_definitions": [{"Name": "acc"}]}, "Regex"),
        ({"metric_definitions": [{"Name": "acc", "Regex": "("}]}, "the regular expression"),
        ({"environment": {"A": 1}}, "environment has 'A': 1"),
        ({"runtime_env": {"conda": "x"}}, "runtime_env has 'conda'; give env_vars, image_uri, pip, working_dir"),
        ({"runtime_env": {"env_vars": {"A": 1}}}, "which Ray does not take"),
        ({"report_timeout_s": 0}, "report_timeout_s is 0"),
        ({"hyperparameters": {"layer": object()}}, "hyperparameter 'layer' is .* which a program cannot be given"),
    ],
)
def test_what_cannot_be_right_is_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        ScriptTrainer("train.py", **options)


def test_a_program_that_is_not_there_is_said_before_a_gang_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"entry_point 'train.py' is no file in source_dir"):
        ScriptTrainer("train.py", source_dir=tmp_path).program({})


def test_the_record_makes_the_same_trainer(tmp_path: Path) -> None:
    trainer = ScriptTrainer(
        "train.py",
        source_dir=tmp_path,
        launcher="torchrun",
        scaling=ScalingConfig(num_workers=2),
        hyperparameters={"lr": 0.1},
        metric_definitions=[{"Name": "acc", "Regex": "acc=(.*)"}],
        processes_per_worker=2,
        environment={"A": "b"},
        grace_period_s=3,
    )
    again = trainer_from_json(trainer.to_json(), allow_code=True)
    assert again.to_json() == trainer.to_json()
    assert trainer.code() == {"entry_point": "train.py"}


def test_the_source_is_sent_without_what_no_program_needs(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "package" / "__pycache__").mkdir(parents=True)
    (source / "package" / "__pycache__" / "a.pyc").write_text("x")
    (source / "package" / "a.py").write_text("1")
    (source / "run.sh").write_text("#!/bin/sh")
    (source / "run.sh").chmod(0o755)
    (source / "nowhere").symlink_to(tmp_path / "gone")
    unpack(packed(source, "run.sh"), tmp_path / "copy")
    copied = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert copied == {"package/a.py", "run.sh"}
    assert os.access(tmp_path / "copy" / "run.sh", os.X_OK)


def test_a_source_too_large_to_be_sent_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainers.script.folders.LARGEST_SOURCE", 10)
    (tmp_path / "rows.csv").write_text("1" * 11)
    with pytest.raises(ConfigurationError, match="holds more than 0 MB, and is sent to every worker"):
        packed(tmp_path, "rows.csv")
