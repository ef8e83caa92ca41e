"""Sweep files for tests to change, and the job files that they come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpo.job_file import job_of_sweep, read_job
from hpo.job_file.models import JobSpec
from tests.support import yaml_text

Convert = Callable[..., str]

SWEEP: dict[str, Any] = {
    "program": "train.py",
    "method": "random",
    "metric": {"name": "val/loss", "goal": "minimize"},
    "run_cap": 12,
    "parameters": {"epochs": {"value": 9}, "lr": {"min": 0.001, "max": 0.1}},
}


@pytest.fixture
def converted(tmp_path: Path) -> Convert:
    """Turns a small sweep with some of its keys changed into a job file's text; None leaves a key out."""

    def convert(units: int | None = None, **changes: Any) -> str:
        sweep = {key: value for key, value in {**SWEEP, **changes}.items() if value is not None}
        file = tmp_path / "sweep.yaml"
        file.write_text(yaml_text.dump(sweep))
        return job_of_sweep(file, units=units)

    return convert


@pytest.fixture
def job(converted: Convert, tmp_path: Path) -> Callable[..., JobSpec]:
    """The same, read as `hpo tune` reads it."""

    def read(**changes: Any) -> JobSpec:
        file = tmp_path / "job.yaml"
        file.write_text(converted(**changes))
        return read_job(file, allow_code=True)

    return read
