"""A single training as a job of the record: its curve, its bill, its end, and going on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.script_job import ACCURACY, WITH, WITHOUT
from tests.support.trainings import training
from trainers import ScalingConfig, ScriptTrainer

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})


@pytest.mark.parametrize("program", [WITH, WITHOUT])
def test_a_program_runs_through_its_checkpoints_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text(program)
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    trainer = ScriptTrainer(
        "train.py",
        source_dir=str(source),
        metric_definitions=[ACCURACY],
        scaling=HERE,
        hyperparameters={"epochs": 9, "eta": 0.2},
    )
    job = training(tmp_path, trainer)
    job.fit(None, "program")
    assert job.curve()["accuracy"].iloc[-1] == pytest.approx(1 - 0.8**9, abs=1e-5)
    assert len((tmp_path / "starts").read_text().splitlines()) == 1
    assert job.describe()["TrainingJobStatus"] == "Completed"
