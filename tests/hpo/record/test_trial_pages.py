"""Pages of trials: each order and filter gives all that it should, once, whatever the pages, on either database."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from hpo.record import JobRow, Key, Store, TrialQuery, TrialRow
from hpo.record.job_view import KIND, TRAINING
from hpo.record.reading.trial_pages import EVER

STATUSES = ("Pending", "Running", "Completed", "Stopped", "Diverged", "Failed")
WORDS = {"Pending": "InProgress", "Running": "InProgress", "Diverged": "Stopped"}


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    drawn = random.Random(7)
    with Store(database) as opened:
        for name, spec in (("job-a", {}), ("job-b", {}), ("alone", {KIND: TRAINING})):
            opened.create_job(JobRow(name=name, created_at=100.0, spec=spec))
            with opened.writer(name) as writer:
                for number in range(-1, 40):
                    begun = drawn.choice([None, float(drawn.randint(1, 5))])
                    row = TrialRow(
                        job=name,
                        trial_id=f"{name}-{number:03d}" if number >= 0 else "untuned",
                        number=number,
                        status=drawn.choice(STATUSES),
                        objective=drawn.choice([None, 0.5, 0.1 + number / 7]),
                        started_at=begun,
                        ended_at=begun and begun + 10,
                        hyperparameters={"eta": float("nan")},
                    )
                    writer.trial(row)
        yield opened


def paged(store: Store, size: int, **query: Any) -> list[tuple[Key, TrialRow]]:
    found: list[tuple[Key, TrialRow]] = []
    while True:
        page = store.find_trials(TrialQuery(most=size, after=found[-1][0] if found else None, **query))
        found += page
        if len(page) < size:
            return found


def key_of(row: TrialRow, by: str) -> Any:
    values = {
        "name": row.trial_id,
        "status": WORDS.get(row.status, row.status),
        "begun": 100.0 if row.started_at is None else row.started_at,
        "objective": row.objective,
    }
    return values[by]


@pytest.mark.parametrize("by", ["name", "status", "begun", "objective"])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_are_what_python_would_sort(store: Store, by: Any, descending: bool) -> None:
    rows = [row for name in ("job-a", "job-b") for row in store.trials(name) if row.number >= 0]
    keyed = [((key_of(row, by), row.trial_id), row) for row in rows if key_of(row, by) is not None]
    expected = [row.trial_id for _, row in sorted(keyed, key=lambda pair: pair[0], reverse=descending)]
    for size in (7, 200):
        found = paged(store, size, by=by, descending=descending, words=WORDS)
        assert [row.trial_id for _, row in found] == expected
        assert all(key == (key_of(row, by), row.trial_id) for key, row in found)


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
