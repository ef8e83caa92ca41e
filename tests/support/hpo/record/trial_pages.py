"""A store with trials of every status, and its pages of trials."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hpo.record import JobRow, Key, Store, TrialQuery, TrialRow
from hpo.record.job_view import KIND, TRAINING

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
