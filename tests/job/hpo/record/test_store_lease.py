"""The lease: one process drives a job, another takes over what a dead one left, and the first then writes nothing."""

from __future__ import annotations

import time

from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli import app
from hpo.record import maintenance as upkeep, writer as store_writer
from hpo.record.tables import LOST_AFTER
from hpo.sagemaker import tuned_job
from hpo.sagemaker.description import describe
from tests.support.hpo.record.store_lease import (
    SPEC,
    ahead,  # noqa: F401  # A fixture.
)
from tests.support.rows import silence, until


def test_an_idle_driver_learns_that_another_took_over(store, quiet, monkeypatch):
    monkeypatch.setattr(store_writer, "LOOK_EVERY", 0.05)
    with store.writer("bank") as first:
        silence(store, LOST_AFTER + 1.0)
        with store.writer("bank"):
            until(lambda: first.lost_lease)


def test_a_job_that_is_driven_runs_for_whoever_looks(store, database, ahead, monkeypatch):
    def end(seconds: float) -> None:
        assert 0.0 < seconds < 5.0
        writer.job(status="Stopped")
        writer.flush()

    with store.writer("bank") as writer:
        writer.job(spec=SPEC, summary={"runs": [[time.time() - 7.0, None]]})
        writer.flush()
        ahead()
        assert describe(store.job("bank"), [])["ConsumedResources"] == {"RuntimeInSeconds": 7}
        for words in (["jobs"], ["describe", "bank"], ["delete", "bank", "--yes"]):
            done = CliRunner().invoke(app, [*words, "--store", database])
            assert "InProgress" in (done.stdout or str(done.exception)), words
        assert upkeep.check(database).abandoned == {}
        tuner = HyperparameterTuner.attach("bank", store=database)
        monkeypatch.setattr(tuned_job.time, "sleep", end)
        tuner.wait()
    assert store.job("bank").status == "Stopped", "it was waited for"
