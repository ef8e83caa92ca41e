"""Deadline of a training function that never reports: it is interrupted with an error."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from trainers.errors import TrialError


class _OverdueError(BaseException):
    """Raised in the middle of a training function; nothing that catches `Exception` holds it up."""


class Deadline:
    """Interrupts the thread that made it if `seconds` pass without a `beat`.

    Code that waits outside Python (a collective, a sleep) is only interrupted when it returns; collectives have
    deadlines of their own.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._thread = threading.get_ident()
        self._beat = threading.Event()
        self._over = threading.Event()
        self._changing = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name="report-deadline", daemon=True)

    def beat(self) -> None:
        """The time begins anew."""
        self._beat.set()

    @contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Runs a block that has to `beat` in time.

        Raises:
            TrialError: it did not; `what` says what was waited for.
        """
        self._watcher.start()
        try:
            try:
                yield
            finally:
                with self._changing:
                    self._over.set()
                    self._beat.set()
        except _OverdueError:
            raise TrialError(f"waited {self.seconds:g} s for {what}") from None

    def _watch(self) -> None:
        while self._beat.wait(self.seconds):
            if self._over.is_set():
                return
            self._beat.clear()
        with self._changing:
            if not self._over.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(_OverdueError)
                )
