"""Population based training as a job: what is tried, recorded, kept and resumed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from tests.support.driving import answer
from tests.support.hpo.jobs.population_job import (
    parents,
    whole,  # noqa: F401  # A fixture.
)
from tests.support.processes import python

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from tests.support.driving import CHANNELS, Counting
    from tests.support.population_job import tuner

    counting = Counting(25, lambda: os.kill(os.getpid(), signal.SIGKILL))
    tuner(Path(sys.argv[1]), (counting,), num_to_keep=None).fit(CHANNELS, job_name="job")
"""


@pytest.mark.fault
def test_with_its_driver_killed_another_ends_it_with_the_same_forks_and_winner(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    assert python("-c", KILLED, str(tmp_path)).returncode == -signal.SIGKILL
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").resume()
    assert {**answer(tmp_path, "job"), "parents": parents(tmp_path)} == whole[1]
