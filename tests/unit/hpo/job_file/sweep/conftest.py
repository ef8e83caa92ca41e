"""Sweep files for tests to change, and the job files that they come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpo.job_file import job_of_sweep, read_job
from hpo.job_file.models import JobSpec
from tests.support import yaml_text
from tests.support.refusals import missing_names
from trainers.errors import ConfigurationError

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


@pytest.fixture
def in_one_line(job: Callable[..., JobSpec]) -> Callable[..., JobSpec]:
    """The same of a sweep whose error has to name the file, and to say all else in one line."""

    def read(**changes: Any) -> JobSpec:
        try:
            return job(**changes)
        except ConfigurationError as refusal:
            first, *lines = str(refusal).splitlines()
            assert "sweep.yaml" in first
            assert len(lines) == 1, lines
            raise

    return read


@pytest.fixture
def commented(converted: Convert) -> Callable[..., str]:
    """Gives the comment of a sweep's job file that has all these names; fails where none has."""

    def find(*names: object, **changes: Any) -> str:
        text = converted(**changes)
        for line in text.splitlines():
            if line.startswith("#") and not missing_names(line, *names):
                return line
        pytest.fail(f"no comment has {names}:\n{text}")

    return find
