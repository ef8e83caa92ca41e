"""Trackers and notices in a job file: what they become, and what is wrong with them, by line, before a job starts."""

from __future__ import annotations

from pathlib import Path

from tests.support.hpo.job_file.tracker_models import (
    JOB,
    path,  # noqa: F401  # Fixtures.
)
from tests.support.processes import printed


def test_no_package_is_imported_before_a_job_needs_it(path: Path) -> None:
    path.write_text(f"{JOB}trackers: {{tensorboard: {{folder: runs}}, mlflow: {{}}, wandb: {{project: x}}}}\n")
    code = (
        "import sys, hpo, hpo.trackers\n"
        "from hpo import HyperparameterTuner\n"
        "from hpo.job_file.reading import read_job\n"
        f"tuner = HyperparameterTuner(**read_job({str(path)!r}).arguments())\n"
        "print(len(tuner.callbacks), [n for n in ('mlflow', 'wandb', 'tensorboard') if n in sys.modules])\n"
    )
    assert printed(code).splitlines()[-1] == "3 []"
