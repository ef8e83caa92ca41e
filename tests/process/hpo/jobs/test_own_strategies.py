"""Strategies of a user's own: a record runs nothing of them that was not allowed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record.store import Store
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer
from tests.support.own_jobs import (
    RANGES,
    SEARCH,
    halves,
    job_file,
    line,
    tuner,
)
from tests.support.refusals import mentions
from trainers import ConfigurationError

KILLED = """
    import os, signal, sys
    from hpo import HyperparameterTuner
    from hpo.job_file import read_job
    from tests.support.driving import Counting

    spec = read_job(sys.argv[1], allow_code=True)
    tuner = HyperparameterTuner(**spec.arguments(), console=False)
    tuner.callbacks = (Counting(9, lambda: os.kill(os.getpid(), signal.SIGKILL)),)
    tuner.fit(spec.data.open(None), job_name="job")
"""


@pytest.mark.fault
def test_a_job_file_names_a_strategy_of_a_users_own(package_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver is killed, and it is resumed: the answer of a tuner that was given the strategy itself."""
    tuner(package_folder, line(package_folder), RANGES, **halves(package_folder, factor=3)).fit(
        CHANNELS, job_name="whole"
    )
    own = {"strategy": "shop.training:Halves", "strategy_options": {"factor": 3}, "hyperband": None, "max_jobs": 8}
    steps = {"trainer_class": "shop.training:Line", "hyperparameters": {"steps": 4, "eta": 0.1}}
    path = job_file(package_folder, tuning={**own, "random_seed": SEARCH["random_seed"]}, **steps)
    refused = CliRunner().invoke(app, ["tune", path])
    assert isinstance(refused.exception, ConfigurationError)
    home = str(package_folder / "shop" / "training.py")
    mentions(str(refused.exception), "tuning.strategy", "shop.training:Halves", home, "--allow-code")
    assert not (package_folder / "ran").exists()
    root = Path(__file__).resolve().parents[4]
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), path],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (package_folder / "ran").exists()
    with Store() as store:
        job = store.job("job")
        assert (job.status, job.spec["strategy"], job.spec["strategy_config"]) == (
            "InProgress",
            "shop.training:Halves",
            {"factor": 3},
        )
    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert answer(package_folder, "job") == answer(package_folder, "whole")
