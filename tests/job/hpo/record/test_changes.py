"""A job is changed or deleted by one process at a time, and by none while another drives it."""

from __future__ import annotations

import os
import time

from hpo.record.tables import LOST_AFTER
from tests.support.refusals import refuses
from tests.support.rows import report, silence
from trainers.errors import LeaseError


def test_what_removes_the_files_of_a_job_for_too_long_deletes_nothing_that_another_process_drives(store, quiet):
    def remove() -> None:
        deadline = time.monotonic() + 30.0
        while not taken:  # The first heartbeat of who deletes may come in between.
            silence(store, LOST_AFTER + 1.0)
            try:
                taken.append(store.writer("bank"))
            except LeaseError:
                assert time.monotonic() < deadline, "the lease was not to be taken for 30 s"

    taken = []
    with refuses(LeaseError, field="bank", value=os.getpid()) as raised:
        store.delete_job("bank", remove)
    assert "hpo stop" not in str(raised.value), "it is this process that is to end"
    taken[0].report(report(1))
    taken[0].close()
    assert len(store.reports("bank")) == 1
