"""Events are written once and in order; whatever the writer does, nobody who puts waits for it."""

from __future__ import annotations

import re
import time

from hpo.trackers.outbox import Outbox
from tests.support.hpo.trackers.outbox import (
    Book,
    book,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import refuses
from trainers.errors import WarmbandError


def test_the_end_waits_for_what_moves_and_not_for_what_stands_still(book: Book) -> None:
    book.may.clear()
    outbox = Outbox("Book", book.write)
    outbox.put(1)
    outbox.put(2)
    assert book.begun.wait(60)
    with refuses(WarmbandError, field="Book", value=2) as stood:
        outbox.close(0.05, 60)
    assert re.search(r"\b\d+ s\b", str(stood.value)), "it does not say how long the end waited"
    slow = Outbox("Book", lambda batch: (time.sleep(0.1) or 1 for _ in batch))
    for number in range(25):
        slow.put(number)
    slow.close(2, 60)
    late = Outbox("Book", lambda batch: (time.sleep(0.1) or 1 for _ in batch))
    for number in range(100):
        late.put(number)
    with refuses(WarmbandError, field="Book") as moved:
        late.close(60, 0.5)
    assert re.search(r"\b\d+ s\b", str(moved.value)), "it does not say how long the end waited"
