"""Jobs in the background of this machine: what comes after a driver's end, and real processes that are killed."""

from __future__ import annotations

import time
from pathlib import Path

from hpo.jobs.launch import background
from hpo.record.store import JobRow, Store
from tests.support.boosting import make
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError


def job() -> JobRow:
    with Store() as store:
        return store.job("background")


def test_a_driver_that_refuses_its_job_says_why_and_is_not_started_again(home: Path) -> None:
    now = time.time()
    spec = make(workers=0).settings.to_json({"train": {"kind": "pandas", "open": {}}}, 1)
    with Store() as store:
        store.create_job(JobRow(name="background", created_at=now, spec=spec))
    with refuses(ConfigurationError, field=("background", "channel", "train")):
        background.start("background", None, None)
    assert job().status == "Failed"
    mentions(job().reason, "channel", "train", "hpo resume background")
    with refuses(ConfigurationError, field=("background", "channel", "train")):
        background.start("background", None, None, resume=True)
    mentions(job().reason, "channel", "train", "hpo resume background")
