"""Options that a program tells in its help alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.job_file import job_of_program, read_job
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError

PROGRAM = """
import argparse
p = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
for name, default in {"lr": 0.1, "epochs": 3}.items():
    p.add_argument(f"--{name}", type=float, default=default, help=f"the {name}")
p.parse_args()
print(f"loss {1}")
"""


def test_with_consent_a_program_is_run_for_its_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)
    with refuses(ConfigurationError, field="train.py", remedy="--run-help"):
        job_of_program("train.py")
    Path("job.yaml").write_text(job_of_program("train.py", run_help=True))
    spec = read_job("job.yaml", allow_code=True)
    assert list(spec.tuning.ranges) == ["lr"]
    assert spec.trainer.hyperparameters == {"epochs": 3}  # type: ignore[union-attr]


def test_a_help_that_does_not_come_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hpo.job_file.first_job.HELP_SECONDS", 0.5)
    Path("train.py").write_text("import time; time.sleep(60)")
    with refuses(ConfigurationError, field="--run-help", value="train.py"):
        job_of_program("train.py", run_help=True)
    Path("train.py").write_text("raise SystemExit('no module')")
    monkeypatch.setattr("hpo.job_file.first_job.HELP_SECONDS", 30.0)
    with refuses(ConfigurationError, field="--run-help", value="no module", remedy="hpo init"):
        job_of_program("train.py", run_help=True)
