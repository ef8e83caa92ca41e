"""Trials that a person stops: obeyed at the next report, and decided the same way again wherever the driver died."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.support.broken_off import Service, answer, check_bills
from tests.support.stopping import KINDS, service_of

ASKS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=4)


def stopped(service: Service) -> dict[str, Any]:
    """Where persons' stops took effect, as the record has it."""
    rows = service.rows.trials.values()
    return {row.trial_id: (row.resource, row.objective, row.stopped) for row in rows if row.stopped}


def check_again(service: Service, expected: dict[str, Any]) -> None:
    """Whoever goes through a search that is over decides all of it as before, and trains nothing."""
    served = len(service.served)
    controller = service.drive()
    assert answer(service, controller) == expected
    assert len(service.served) == served


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 5),
    ASKS,
    st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 3)), max_size=3),
    st.booleans(),
)
def test_a_search_of_which_trials_are_stopped_decides_again_as_it_did(
    kind: str, parallel: int, asks: list[tuple[int, int]], ends: list[tuple[bool, int, int]], exact: bool
) -> None:
    service = service_of(kind, parallel, asks, exact_from=lambda hyperparameters: exact)
    before: dict[str, Any] = {}
    for killed, after, unwritten in ends:
        ended = service.drive(**{"dies_at" if killed else "stop_at": after})
        if ended is None:
            service.rows.lose(unwritten)
        before = stopped(service)  # What was lost is decided anew.
        assert before.keys() <= service.rows.stops.keys()
    controller = service.drive()
    assert controller is not None
    check_bills(service, controller)
    assert before.items() <= stopped(service).items()
    for trial_id in service.rows.stops:
        row = service.rows.trials[trial_id]
        assert row.ended_at is not None
        assert row.stopped.get("by", "ada") == "ada"
    expected = answer(service, controller)
    check_again(service, expected)
