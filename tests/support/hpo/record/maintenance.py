"""A record with an ended job that has a row of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hpo.record.store import LineRow, Store, TrialRow
from tests.support.rows import bill, job, report


@pytest.fixture
def store(database) -> Iterator[Store]:
    """Return a store with an ended job and a row of each kind."""
    with Store(database) as opened:
        opened.create_job(job())
        with opened.writer("bank") as writer:
            writer.trial(TrialRow(job="bank", trial_id="t0", number=0))
            writer.report(*map(report, range(100)))
            writer.ledger(bill(1, trial_id="t0"), bill(2))
            writer.line(LineRow(job="bank", text="a gang is up", at=1.0))
            writer.job(status="Completed")
        yield opened
