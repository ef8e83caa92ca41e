"""Reports with files, and the checkpoints and steps of a segment."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import ray.train

from trainers.gangs.messages import Segment

WORDS = {"lr": 0.01, "num_epochs": 6}


def steps(segment: Segment) -> list[int]:
    assert isinstance(segment, Segment), segment
    return [report.step for report in segment.reports]


def report(metrics: dict[str, Any], **files: str) -> None:
    """Report metrics, with a checkpoint of files of these names and texts if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, "in").mkdir(exist_ok=True)
            Path(folder, "in", name).write_text(text)
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder) if files else None)


def read(checkpoint: Any) -> dict[str, str]:
    with checkpoint.as_directory() as folder:
        return {path.name: path.read_text() for path in Path(folder, "in").iterdir()}
