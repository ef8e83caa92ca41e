"""`ScriptTrainer`: what it refuses, what its record holds, and what it sends to workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import refuses, refuses_each
from trainers import ScalingConfig, ScriptTrainer
from trainers.errors import ConfigurationError
from trainers.registry import trainer_from_json
from trainers.script.folders import packed, unpack


def test_what_cannot_be_right_is_refused() -> None:
    def make(**options: Any) -> Callable[[], object]:
        return lambda: ScriptTrainer("train.py", **options)

    thing = object()
    refuses_each(
        [
            (make(launcher="torchrn"), ("launcher", "torchrn", "'torchrun'")),
            (make(launcher="deepspeed {scrpt}"), ("launcher", "{scrpt}", "{program}")),
            (make(processes_per_worker=2), ("processes_per_worker", 2, "launcher", "python", "torchrun")),
            (make(launcher="tensorflow", parameter_servers=2), ("parameter_servers", 2, 1, "num_workers=3")),
            (make(metric_definitions=[{"Name": "acc"}]), ("metric_definitions[0]", {"Name": "acc"}, "'Regex'")),
            (make(metric_definitions=[{"Name": "acc", "Regex": "("}]), ("metric_definitions[0]", "'('", "'acc'")),
            (make(environment={"A": 1}), ("environment", "'A'", 1, "text")),
            (
                make(runtime_env={"conda": "x"}),
                ("runtime_env", "'conda'", "env_vars", "image_uri", "pip", "working_dir"),
            ),
            (make(runtime_env={"env_vars": {"A": 1}}), ("runtime_env", {"env_vars": {"A": 1}}, "Ray")),
            (make(report_timeout_s=0), ("report_timeout_s", 0, "seconds")),
            (make(hyperparameters={"layer": thing}), ("'layer'", thing, "number", "None")),
        ],
        ConfigurationError,
    )


def test_files_and_channels_that_are_not_there_are_said_before_a_gang_starts(tmp_path: Path) -> None:
    def checked(entry_point: str = "train.py", **options: Any) -> Callable[[], object]:
        return lambda: ScriptTrainer(entry_point, **{"source_dir": tmp_path, **options}).checked({})

    (tmp_path / "train.py").write_text("")
    checked()()
    checked(working_dir=tmp_path)()
    gone = str(tmp_path / "gone")
    refuses_each(
        [
            (checked(source_dir=gone), ("source_dir", gone, "folder")),
            (checked("gone.py"), ("entry_point", "'gone.py'", "source_dir", str(tmp_path))),
            (checked("."), ("entry_point", "'.'", "source_dir", str(tmp_path))),
            (checked(working_dir="gone"), ("working_dir", "'gone'", gone, "absolute path")),
            (checked(working_dir="train.py"), ("working_dir", "'train.py'", "absolute path")),
            (checked(hyperparameters={"x": "{data:trian}"}), ("'x'", "{data:trian}", "no channels")),
            (checked(launcher="run {data:trian} {program}"), ("launcher", "{data:trian}", "no channels")),
        ],
        ConfigurationError,
    )
    with refuses(ConfigurationError, field="entry_point", value="../train.py", remedy="below it"):
        packed(tmp_path / "folder", "../train.py")


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
    with refuses(ConfigurationError, field=("source_dir", str(tmp_path)), value="0 MB", remedy="channels"):
        packed(tmp_path, "rows.csv")
