"""Drain notices: looked for beside the job, and nobody waits for a head that does not answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from tests.support.refusals import mentions
from trainers.cluster import draining
from trainers.cluster.draining import Notices, Status

DEADLINE = 30.0


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LOOK_SECONDS", 0.01)


def after(looks: int, *answers: Callable[[], Status]) -> Notices:
    """What is known after so many looks, the last of the answers again and again."""
    left, done, count = list(answers), threading.Event(), [0]

    def look() -> Status:
        count[0] += 1
        if count[0] > looks:
            done.set()
        return (left.pop(0) if len(left) > 1 else left[0])()

    notices = Notices(look)
    try:
        assert done.wait(DEADLINE)
    finally:
        notices.close()
    return notices


def failing() -> Status:
    raise RuntimeError("the head is away")


def test_what_a_look_found_is_kept_while_the_head_is_away(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        notices = after(5, lambda: (frozenset({"a"}), {"a": {"CPU": 2.0}}), failing)
    assert notices.nodes == {"a"}
    assert notices.free_on == {"a": {"CPU": 2.0}}
    [record] = caplog.records
    mentions(record.message, "drain", "the head is away")


def test_a_notice_that_is_taken_back_is_forgotten() -> None:
    notices = after(3, lambda: (frozenset({"a"}), {"a": {"CPU": 2.0}}), lambda: (frozenset(), {}))
    assert (notices.nodes, notices.free_on) == (frozenset(), {})
