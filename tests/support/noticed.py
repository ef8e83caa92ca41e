"""A job of the record that has ended, and a program whose job is killed on its way."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from hpo import Callback, TrainingJob
from hpo.notices.entries import Webhook
from hpo.notices.notice import Notice, of_end
from hpo.record.store import JobRow, Store
from tests.support.boosting import CHANNELS
from tests.support.trainings import boosted


def ended_job(store: Store, entries: dict[str, Any], name: str = "job", **fields: Any) -> JobRow:
    """A job that has ended, of which nothing was sent."""
    spec = {
        "objective_metric_name": "validation:auc",
        "notices": {key: each.to_json() for key, each in entries.items()},
    }
    row = {"status": "Completed", "ended_at": 1_700_000_000.25, "created_at": 1_699_999_000.5, **fields}
    job = JobRow(name=name, spec=spec, **row)
    store.create_job(job)
    return job


def notice(entry: Any, **fields: Any) -> Notice:
    """The notice of a job's end to one entry."""
    row = {"status": "Failed", "ended_at": 1_700_000_000.25, "created_at": 1.5, **fields}
    [made] = of_end(JobRow(name="job", spec={"objective_metric_name": "validation:auc"}, **row), {"ops": entry})
    return made


class Killed(Callback):
    """The driver is killed at a report."""

    def on_trial_report(self, trial: Any, report: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Trains with a webhook: the record's URL, the hook's, and "killed" for a driver that is killed as it trains."""
    record, url, how = sys.argv[1:]
    job = TrainingJob(
        boosted(),
        store=record,
        notices={"ops": Webhook(url=url)},
        callbacks=[Killed()] if how == "killed" else [],
        console=False,
    )
    job.fit(CHANNELS, job_name="job")


if __name__ == "__main__":
    main()
