"""Trials that a person adds to a job that runs: whatever dies, one trial takes each, and has it in every life."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store
from tests.support.driving import CHANNELS
from tests.support.listed import hpo
from tests.support.processes import python
from tests.support.refusals import mentions

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from hpo.record.store import Store
    from hpo.sagemaker import add_trial
    from tests.support.driving import CHANNELS, Counting, tuner

    folder = Path(sys.argv[1])

    def act():
        with Store(f"sqlite:///{folder}/record.db") as store:
            add_trial(store, "job", {"eta": 0.5, "subsample": 0.75})
        os.kill(os.getpid(), signal.SIGKILL)

    tuner(folder, (Counting(3, act),)).fit(CHANNELS, job_name="job")
"""


@pytest.mark.fault
def test_a_process_that_is_killed_before_a_trial_took_it_leaves_it_to_the_next(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    assert python("-c", KILLED, str(tmp_path)).returncode == -signal.SIGKILL
    mentions(hpo("trials", "job", "--store", store, columns=100), "eta=0.5", "subsample=0.75")
    HyperparameterTuner.attach("job", store=store).resume(inputs=CHANNELS)
    with Store(store) as record:
        (trial,) = [row for row in record.trials("job") if row.given]
    assert trial.hyperparameters == {"eta": 0.5, "subsample": 0.75}
    assert "eta=0.5" not in hpo("trials", "job", "--store", store, columns=100)
