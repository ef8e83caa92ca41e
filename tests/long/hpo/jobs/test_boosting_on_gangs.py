"""A job of XGBoost with all that it has, on gangs that lose workers, rows and their driver: the same answer."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store
from tests.support import gang_faults
from tests.support.boosting_job import channels, tuner
from tests.support.driving import answer
from tests.support.processes import python
from trainers import storage

pytestmark = pytest.mark.fault


def found(folder: Path) -> tuple[dict[str, Any], dict[str, bytes], int]:
    """The answer, every trial's model, and how often gangs were lost."""
    with Store(f"sqlite:///{folder}/record.db") as store:
        trials = store.trials("job")
    models = {trial.trial_id: storage.read(trial.checkpoint) for trial in trials if trial.checkpoint}
    return answer(folder, "job"), models, sum(trial.attempts for trial in trials)


@pytest.fixture(scope="module")
def whole(ray_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(channels(folder), job_name="job")
    result, models, lost = found(folder)
    assert (result["status"], lost) == (("Completed", ""), 0)
    assert len({trial[4]["num_workers"] for trial in result["trials"] if trial[0] != "untuned"}) == 2
    return result, models


def test_a_worker_and_then_its_rows_are_lost(whole: tuple[dict[str, Any], dict[str, bytes]], tmp_path: Path) -> None:
    kill, clear = tmp_path / "kill", tmp_path / "clear"
    kill.touch()
    clear.touch()
    own = {
        "objective_function": gang_faults.killing(str(kill)),
        "metric_functions": [gang_faults.clearing(str(clear), behind=str(kill))],
    }
    tuner(tmp_path, **own).fit(channels(tmp_path), job_name="job")
    assert not kill.exists(), "a worker was killed"
    assert not clear.exists(), "rows were cleared away"
    *result, lost = found(tmp_path)
    assert tuple(result) == whole
    assert lost == 2


DIES = """
    import os, signal, sys
    from pathlib import Path
    from tests.support.boosting_job import channels, tuner
    from tests.support.driving import Counting, row
    from tests.support.rows import until

    folder = Path(sys.argv[1])

    def die():
        until(lambda: bool(row(folder).summary.get("runs")))
        os.kill(os.getpid(), signal.SIGKILL)

    tuner(folder, (Counting(14, die),)).fit(channels(folder), job_name="job")
"""


def test_its_driver_is_killed(whole: tuple[dict[str, Any], dict[str, bytes]], tmp_path: Path) -> None:
    assert python("-c", DIES, str(tmp_path)).returncode == -signal.SIGKILL
    again = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db", allow_code=True)
    again.resume(inputs=channels(tmp_path))
    result, models, _ = found(tmp_path)
    assert (result, models) == whole
