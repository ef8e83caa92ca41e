"""The store: what goes in comes out, and sums are those of the rows, whoever else writes at once."""

from __future__ import annotations

import threading

from hpo.record.store import Store, TrialRow
from tests.support.rows import bill, job, report


def test_rows_come_in_their_order(store):
    rows = [report(step, trial_id=trial) for trial in ("t1", "t0") for step in (10, 9, 1)]
    with store.writer("bank") as writer:
        writer.report(*rows)
        writer.ledger(*(bill(seconds) for seconds in range(20)))
        writer.ledger(bill(99, at=0.5, trial_id="t0", kind="starting"))
        for number, trial in enumerate(["z", "y"]):
            writer.trial(TrialRow(job="bank", trial_id=trial, number=number))
    assert [(row.trial_id, row.step) for row in store.reports("bank")] == [
        (t, s) for t in ("t0", "t1") for s in (1, 9, 10)
    ]
    assert [row.step for row in store.reports("bank", "t1")] == [1, 9, 10]
    assert [row.worker_seconds for row in store.ledger("bank")] == [99, *range(20)]
    assert [row.trial_id for row in store.trials("bank")] == ["z", "y"]


def test_threads_that_open_a_new_file_at_once_find_its_tables(tmp_path):
    problems: list[Exception] = []

    def open_and_use(url: str, name: str, gate: threading.Barrier) -> None:
        gate.wait()
        try:
            with Store(url) as store:
                store.create_job(job(name))
        except Exception as error:
            problems.append(error)

    for number in range(5):
        url, gate = f"sqlite:///{tmp_path}/{number}.db", threading.Barrier(6)
        threads = [threading.Thread(target=open_and_use, args=(url, f"j{n}", gate)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        with Store(url) as store:
            assert len(store.jobs()) == 6
