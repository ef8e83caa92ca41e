"""The store: what goes in comes out, and sums are those of the rows, whoever else writes at once."""

from __future__ import annotations

from hpo.record.maintenance import check
from hpo.record.store import Store
from tests.support.at_once import GATE, LIGHT, at_once

# The packages' own __init__ would bring Ray, which takes seconds to import.
WRITE_A_JOB = f"""{LIGHT}
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
url, name = sys.argv[1:]
{GATE}
store = Store(url)
store.create_job(JobRow(name=name, created_at=1.0))
with store.writer(name) as writer:
    for trial in range(20):
        writer.trial(TrialRow(job=name, trial_id=f"t{{trial}}", number=trial))
        for step in range(100):
            row = ReportRow(
                job=name, trial_id=f"t{{trial}}", step=step, objective=step / 7, metrics={{"auc": step / 7}}, at=1.0
            )
            writer.report(row)
        writer.ledger(LedgerRow(job=name, gang="g", kind="training", worker_seconds=1.0, at=float(trial)))
        if trial % 5 == 0:
            writer.flush()
    writer.job(status="Completed")
"""


def test_processes_that_make_and_fill_one_database_at_once_lose_nothing(database):
    names = [f"job-{number}" for number in range(4)]
    with at_once(WRITE_A_JOB, [[database, name] for name in names]) as processes:
        for process in processes:
            process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0] * 4
    with Store(database) as store:
        for name in names:
            reports = store.reports(name)
            steps = [(row.trial_id, row.step) for row in reports]
            assert steps == [(t, s) for t in sorted(f"t{n}" for n in range(20)) for s in range(100)]
            assert all(row.objective == row.metrics["auc"] == row.step / 7 for row in reports)
            assert [row.worker_seconds for row in store.ledger(name)] == [1.0] * 20
            assert (store.job(name).status, store.job(name).lease) == ("Completed", "")
    assert check(database).rows == {
        "jobs": 4,
        "trials": 80,
        "reports": 8_000,
        "ledger": 80,
        "lines": 0,
        "additions": 0,
        "acts": 4,
    }
