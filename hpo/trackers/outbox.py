"""A bounded queue emptied by one thread, so that its writers never wait."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hpo.text import count, first_line, masked
from trainers.errors import WarmbandError

MOST_WAITING = 50_000
"""Events in the queue; some 30 MB."""

GATHER_SECONDS = 0.25
"""How long the first event waits for others to be written with it."""

PATIENCE_SECONDS = 60.0
"""How long one step of writing may take."""

LONGEST_REASON = 300


class Outbox:
    """Hands events to a thread of its own, in batches and in order, until that fails or does not keep up.

    Then it is quiet: one call raises, what waited is dropped, and every later event is too.

    Args:
        name: what it writes to, as in "MLflow".
        write: writes a batch; yields how many of its events are done, as it goes. It may block, and raise anything.
        most: events that may wait.
        patience: seconds that `write` may take from one yield to the next.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[list[Any]], Iterator[int]],
        *,
        most: int = MOST_WAITING,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._name, self._write = name, write
        self._most, self._patience = most, patience
        self._changed = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._in_hand = 0
        self._since = 0.0
        """When the step that is being written began; 0 while none is."""
        self._failure = ""
        self._closing = self._quiet = False
        self._thread = threading.Thread(target=self._run, name=f"writer to {name}", daemon=True)
        self._thread.start()

    def put(self, event: Any) -> None:
        """Queues an event; drops it where the outbox is quiet.

        Raises:
            WarmbandError: writing failed, takes too long or does not keep up. Once: from then on the outbox is quiet.
        """
        with self._changed:
            if self._quiet:
                return
            if self._failure:
                raise self._silenced(self._failure, 1)
            if self._since and time.monotonic() - self._since > self._patience:
                raise self._silenced(f"it has not answered for {self._patience:g} s", 1)
            if len(self._waiting) >= self._most:
                raise self._silenced("it does not keep up", 1)
            self._waiting.append(event)
            self._changed.notify_all()

    def close(self, still: float, most: float) -> None:
        """Waits until all is written, and ends the thread.

        Args:
            still: seconds in which nothing is written, after which it is waited for no longer.
            most: seconds after which it is not in any case.

        Raises:
            WarmbandError: something was not written; not where the outbox was quiet before.
        """
        begun = time.monotonic()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            before = self._left + 1
            while not self._over() and self._left < before and (left := begun + most - time.monotonic()) > 0:
                before = self._left
                self._changed.wait_for(partial(self._moved, before), min(still, left))
            if self._quiet:
                return
            if self._failure or not self._over():
                waited = f"the job's end waited {time.monotonic() - begun:.0f} s for it"
                raise self._silenced(self._failure or waited, 0)
            self._quiet = True

    def _over(self) -> bool:
        return bool(self._failure) or self._quiet or not self._left

    def _moved(self, before: int) -> bool:
        return self._over() or self._left < before

    @property
    def _left(self) -> int:
        return len(self._waiting) + self._in_hand

    def _silenced(self, reason: str, more: int) -> WarmbandError:
        """Drops what waits, and says so; the caller holds the lock."""
        lost = self._left + more
        self._quiet = True
        self._waiting.clear()
        self._changed.notify_all()
        return WarmbandError(
            f"{self._name} is left out from now on, and the job goes on without it: {reason}; "
            f"{count(lost, 'event')} not written"
        )

    # ---- the thread

    def _run(self) -> None:
        while batch := self._next():
            try:
                for done in self._write(batch):
                    with self._changed:
                        self._in_hand -= done
                        self._since = time.monotonic()
                        self._changed.notify_all()
                        if self._quiet:
                            return
            except BaseException as error:  # Some clients end what they dislike with SystemExit.
                words = f"{type(error).__name__}: {masked(first_line(str(error)))}"
                with self._changed:
                    self._failure, self._since = words[:LONGEST_REASON], 0.0
                    self._changed.notify_all()
                return

    def _next(self) -> list[Any]:
        """The next batch, when there is one; nothing when the outbox is done."""
        with self._changed:
            self._since = 0.0
            self._changed.wait_for(lambda: self._waiting or self._closing or self._quiet)
            self._changed.wait_for(lambda: self._closing or self._quiet, GATHER_SECONDS)
            batch = list(self._waiting)
            self._waiting.clear()
            self._in_hand = len(batch)
            self._since = time.monotonic()
            return batch
