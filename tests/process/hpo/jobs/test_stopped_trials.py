"""Trials that a person stops: obeyed at the next report, and decided the same way again wherever the driver died."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hpo import HyperparameterTuner
from hpo.record.store import Store
from tests.support.driving import CHANNELS, answer
from tests.support.fixtures.hpo_cli import store  # noqa: F401  # A fixture.
from tests.support.lines import line_with
from tests.support.listed import hpo
from tests.support.processes import python

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from hpo.record.store import Store
    from hpo.sagemaker import stop_trial
    from tests.support.driving import CHANNELS, Counting, tuner
    from tests.support.rows import until

    folder = Path(sys.argv[1])

    def act():
        with Store(f"sqlite:///{folder}/record.db") as store:
            until(lambda: any(row.trial_id == "job-001" and row.resource for row in store.trials("job")))
            stop_trial(store, "job", "job-001", by="ada")
        os.kill(os.getpid(), signal.SIGKILL)

    tuner(folder, (Counting(3, act),)).fit(CHANNELS, job_name="job")
"""


@pytest.mark.fault
def test_a_process_that_is_killed_before_it_obeyed_leaves_that_to_the_next(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    assert python("-c", KILLED, str(tmp_path)).returncode == -signal.SIGKILL
    said = hpo("trials", "job", "--store", store, columns=100)
    line_with(said, "job-001", "ada")
    HyperparameterTuner.attach("job", store=store).resume(inputs=CHANNELS)
    with Store(store) as record:
        row = next(row for row in record.trials("job") if row.number == 1)
        assert (row.status, row.stopped_by, row.resource) == ("Stopped", "ada", 1)
        assert [act.kind for act in record.acts("job")] == ["created", "trial_stopped", "resumed"]
        record.update_job("job", status="InProgress", ended_at=None)  # As if it had died right before its end.
    before = answer(tmp_path, "job")
    HyperparameterTuner.attach("job", store=store).resume(inputs=CHANNELS)
    assert {**answer(tmp_path, "job"), "status": before["status"]} == before
