"""Population based training as a job: what is tried, recorded, kept and resumed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store
from hpo.record.tables import TrialRow
from tests.support.driving import CHANNELS, answer
from tests.support.population_job import tuner
from tests.support.processes import python


def rows(folder: Path) -> dict[str, TrialRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return {row.trial_id: row for row in store.trials("job") if row.number >= 0}


def fitted(folder: Path, channels: Any = CHANNELS, **options: Any) -> dict[str, Any]:
    tuner(folder, **options).fit(channels, job_name="job")
    return {**answer(folder, "job"), "parents": parents(folder)}


def parents(folder: Path) -> list[tuple[str, int, str]]:
    return [(row.parent, row.parent_resource, row.replaces) for row in rows(folder).values()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, fitted(folder, num_to_keep=None)


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
