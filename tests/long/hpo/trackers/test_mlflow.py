"""What MLflow's own client finds of a job in a database and on a server, and what happens where there is none."""

from __future__ import annotations

import time

import pytest
from mlflow import MlflowClient

from hpo.observers.callbacks import Callbacks
from hpo.trackers import MLflow
from tests.support.followed import (
    start,
)
from tests.support.hpo.trackers.mlflow import _tell, check
from tests.support.mlflow_server import end
from tests.support.refusals import mentions


@pytest.mark.fault
def test_a_real_server_holds_the_same_and_may_die(server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its death is one warning, and the job goes on."""
    url, running = server
    check(url)
    said: list[str] = []
    callbacks = Callbacks([MLflow(url.replace("//", "//me:secret@"), experiment="dies")], said.append)
    callbacks.job_start(start(name="job-2"))
    client = MlflowClient(tracking_uri=url)
    deadline = time.monotonic() + 60
    while not (found := client.get_experiment_by_name("dies")) or not client.search_runs([found.experiment_id]):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
    end(running)
    _tell(callbacks)
    assert len(said) == 1
    mentions(said[0], "MLflow")
    assert "secret" not in said[0]
