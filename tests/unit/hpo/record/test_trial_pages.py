"""Pages of trials: each order and filter gives all that it should, once, whatever the pages, on either database."""

from __future__ import annotations

from typing import Any

import pytest

from hpo.record import Store, TrialRow
from tests.support.hpo.record.trial_pages import (
    WORDS,
    paged,
    store,  # noqa: F401  # Fixtures.
)


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
