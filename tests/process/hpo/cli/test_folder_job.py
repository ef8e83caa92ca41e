"""A job file whose channel is a folder of files: a program finds them, and the record says what they were."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import run

PROGRAM = """
import argparse, json, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--eta", type=float)
args = parser.parse_args()
files = [path for path in pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).rglob("*") if path.is_file()]
assert sorted(path.parent.name for path in files) == ["cats", "cats", "dogs"], files
config = json.loads(os.environ["SM_INPUT_DATA_CONFIG"])
assert config["train"]["S3DistributionType"] == "ShardedByS3Key"
for epoch in range(1, args.epochs + 1):
    print(f"epoch={epoch} acc={args.eta * epoch}")
"""

JOB = """
name: folders
data: {channels: {train: {folder: ./images, distribution: ShardedByS3Key}}}
trainer:
  type: script
  entry_point: train.py
  num_workers: 0
  resources_per_worker: {CPU: 1}
  hyperparameters: {epochs: 2}
  metric_definitions: [{Name: accuracy, Regex: 'epoch=(?P<step>[0-9]+) acc=(?P<value>[-+0-9.eE]+)'}]
tuning:
  objective_metric_name: accuracy
  strategy: Grid
  ranges: {eta: {type: categorical, values: [0.1, 0.2]}}
"""


def test_a_folder_of_a_job_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cats/1 é.jpg", "cats/2.jpg", "dogs/1.jpg"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_bytes(b"\xff\xd8")
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)
    assert run(monkeypatch, "tune", "job.yaml", "--allow-code") == 0, capsys.readouterr().err
    capsys.readouterr()
    assert run(monkeypatch, "describe", "folders", "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert described["TrainingJobStatusCounters"]["Completed"] == 2
    assert described["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == 0.4
    assert run(monkeypatch, "describe", "folders") == 0
    assert re.search(r"train +3 files, .*images", capsys.readouterr().out)
