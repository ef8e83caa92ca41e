"""A book that an outbox writes to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest


class Book:
    """Writes events into a list, when it may; the event "bad" cannot be written."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.batches = 0
        self.may = threading.Event()
        self.may.set()
        self.begun = threading.Event()

    def write(self, batch: list[Any]) -> Iterator[int]:
        self.batches += 1
        for event in batch:
            self.begun.set()
            self.may.wait(60)
            if event == "bad":
                raise ConnectionError("http://me:secret@host/ refused\nand more")
            self.written.append(event)
            yield 1


@pytest.fixture
def book() -> Iterator[Book]:
    made = Book()
    yield made
    made.may.set()  # So that no thread stays.
