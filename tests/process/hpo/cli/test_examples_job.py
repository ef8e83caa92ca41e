"""A job file whose channels are images and a dataset of one's own: it runs no code unasked, and records both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpo.record import Store
from tests.support.command import run
from tests.support.examples import image_folder
from tests.support.refusals import mentions

JOB = """
name: examples
data:
  channels:
    train: {images: ./images, size: 4}
    validation: {named: "own_rows:rows", arguments: {rows: 6}}
trainer:
  type: torch
  train_loop: tests.support.examples_job:train
  num_workers: 0
  resources_per_worker: {CPU: 1}
  hyperparameters: {epochs: 2, per_worker_batch_size: 5}
  metrics: ["validation:accuracy"]
tuning:
  objective_metric_name: validation:accuracy
  strategy: Grid
  ranges: {lr: {type: categorical, values: [0.1, 0.2]}}
"""

OWN = """
import torch

open("ran", "a").write("x")

def rows(rows):
    return torch.utils.data.TensorDataset(torch.full((rows, 3, 4, 4), 7), torch.zeros(rows, dtype=torch.int64))
"""


def test_examples_of_a_job_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    image_folder(tmp_path / "images")
    (tmp_path / "own_rows.py").write_text(OWN)
    (tmp_path / "job.yaml").write_text(JOB)
    assert run(monkeypatch, "tune", "job.yaml") != 0
    refused = capsys.readouterr().err
    mentions(refused, "data.channels.validation.named", "own_rows:rows", "--allow-code")
    assert not (tmp_path / "ran").exists()
    assert run(monkeypatch, "tune", "job.yaml", "--allow-code") == 0, capsys.readouterr().err
    capsys.readouterr()
    assert run(monkeypatch, "describe", "examples", "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert described["TrainingJobStatusCounters"]["Completed"] == 2
    with Store(None) as store:
        inputs = store.job("examples").spec["inputs"]
    assert inputs["train"]["rows"] == 20
    assert inputs["validation"]["open"] == {
        "examples": "named",
        "arguments": {"function": "own_rows:rows", "arguments": {"rows": 6}},
    }
    (tmp_path / "ran").unlink()
    assert run(monkeypatch, "resume", "examples") != 0
    mentions(capsys.readouterr().err, "inputs.validation", "own_rows:rows", "--allow-code")
    assert not (tmp_path / "ran").exists()
