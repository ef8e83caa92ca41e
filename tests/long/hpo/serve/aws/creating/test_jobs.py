"""Jobs that the service's own client creates: one that was left behind is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpo import jobs
from hpo.record import Store
from hpo.serve.aws.creating import jobs as creating, read_tables, start_left_behind
from hpo.serve.aws.creating.asked import training_of
from hpo.serve.aws.creating.jobs import REQUEST
from tests.support.hpo.serve.aws.creating import ended, reached, request, store_of_files  # noqa: F401  # Fixtures.
from tests.support.rows import sqlite_url


def test_a_job_that_was_written_and_not_started_is_started(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, url = request(tmp_path), sqlite_url(tmp_path)
    training, inputs = training_of(asked, read_tables(None), url)
    job = jobs.NewJob.of(training.settings.changed(), inputs, "made", url, 63, apart=True)
    replace(job, row=replace(job.row, spec={**job.row.spec, REQUEST: asked})).write()
    start_left_behind(store, url)
    assert store.job("made").lease == "", "it may be under way to its driver"
    monkeypatch.setattr(creating, "LEFT_SECONDS", -1.0)
    start_left_behind(store, url)
    assert ended(store, "made") == "Completed"
    start_left_behind(store, url)  # There is nothing left to do.
