"""Pages of trials: each order and filter gives all that it should, once, whatever the pages, on either database."""

from __future__ import annotations

import time
from typing import Any

from hpo.record import JobRow, Store, TrialQuery, TrialRow
from hpo.record.reading.trial_pages import EVER
from tests.support.hpo.record.trial_pages import (
    WORDS,
    paged,
    store,  # noqa: F401  # Fixtures.
)


def test_filters_leave_what_passes(store: Store) -> None:
    rows = {row.trial_id: row for row in store.trials("job-a") if row.number >= 0}

    def names(**query: Any) -> list[str]:
        return [row.trial_id for _, row in paged(store, 3, job="job-a", **query)]

    assert names() == list(rows)
    assert names(status="InProgress", words=WORDS) == [
        name for name, row in rows.items() if row.status in ("Pending", "Running")
    ]
    assert names(contains="B-0") == []
    assert names(contains="A-01") == [f"job-a-{number:03d}" for number in range(10, 20)]
    assert names(contains="%") == names(contains="_") == [], "no wildcards"
    assert names(begun=(2.0, 4.0)) == [name for name, row in rows.items() if row.started_at == 3.0]
    assert names(modified=(0.0, 14.0)) == [name for name, row in rows.items() if row.ended_at and row.ended_at < 14]
    assert names(modified=EVER, begun=(99.0, 101.0)) == [name for name, row in rows.items() if row.started_at is None]
    assert names(trial_id="job-a-007") == ["job-a-007"]
    assert names(trial_id="untuned") == [], "it is none of the trials"


def test_a_page_of_ten_thousand_trials_is_quick(database: str) -> None:
    with Store(database) as store:
        store.create_job(JobRow(name="many", created_at=1.0))
        with store.writer("many") as writer:
            for number in range(10_000):
                values = {"eta": 0.1 * number, "depth": number % 9}
                name = f"many-{number:03d}"
                writer.trial(
                    TrialRow(job="many", trial_id=name, number=number, hyperparameters=values, objective=number % 997)
                )
        store.find_trials(TrialQuery(most=1, job="many"))
        seconds = []
        for by in ("name", "status", "begun", "objective") * 3:
            began = time.perf_counter()
            assert len(store.find_trials(TrialQuery(most=100, job="many", by=by))) == 100  # type: ignore[arg-type]
            seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
        store.trials("many")
        # Of the same machine at the same time, so that a busy one fails nobody.
        assert min(seconds) < (time.perf_counter() - began) / 3, seconds
