"""Events are written once and in order; whatever the writer does, nobody who puts waits for it."""

from __future__ import annotations

import time

import pytest

from hpo.trackers.outbox import Outbox
from tests.support.hpo.trackers.outbox import (
    Book,
    book,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import mentions, refuses
from trainers.errors import WarmbandError


def test_everything_is_written_in_order_and_in_batches(book: Book) -> None:
    outbox = Outbox("Book", book.write)
    for number in range(1000):
        outbox.put(number)
    outbox.close(60, 60)
    assert book.written == list(range(1000))
    assert book.batches < 100


def test_a_writer_that_hangs_holds_nobody_up_and_is_told_of_once(book: Book) -> None:
    book.may.clear()
    outbox = Outbox("Book", book.write, patience=0.05)
    outbox.put(0)
    assert book.begun.wait(60)
    time.sleep(0.1)
    begun = time.monotonic()
    with refuses(WarmbandError, field="Book", value="0.05 s", remedy="2"):
        outbox.put(1)
    for number in range(10_000):
        outbox.put(number)
    outbox.close(60, 60)
    assert time.monotonic() - begun < 30
    book.may.set()
    outbox._thread.join(60)
    assert not outbox._thread.is_alive()
    assert book.written == [0], "what was in hand; no more after it was said not to be"


def test_a_full_queue_drops_the_writer_and_keeps_the_memory(book: Book) -> None:
    book.may.clear()
    outbox = Outbox("Book", book.write, most=10)
    outbox.put("first")
    assert book.begun.wait(60)
    for number in range(10):
        outbox.put(number)
    with refuses(WarmbandError, field="Book", value=12):
        outbox.put(10)
    outbox.put(11)
    assert not outbox._waiting


def test_a_writer_that_fails_says_why_without_passwords(book: Book) -> None:
    outbox = Outbox("Book", book.write)
    outbox.put("good")
    outbox.put("bad")
    outbox.put("never")
    outbox._thread.join(60)
    with pytest.raises(WarmbandError) as caught:
        outbox.put("late")
    mentions(str(caught.value), "Book", "ConnectionError: http://***@host/ refused", 3)
    assert book.written == ["good"]
    outbox.put("later")
    outbox.close(60, 60)


def test_a_failure_at_the_end_is_told_at_the_end(book: Book) -> None:
    outbox = Outbox("Book", book.write)
    outbox.put("bad")
    with refuses(WarmbandError, field="Book", value=1):
        outbox.close(60, 60)
