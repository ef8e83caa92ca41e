"""Signals that stop a job: Ctrl-C, SIGTERM and, for training in this process, requests in its record."""

from __future__ import annotations

import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from hpo.search import INTERRUPTED, TERMINATED
from trainers.process import interrupt

EXIT_CODES = {INTERRUPTED: 130, TERMINATED: 143}
"""Of a process whose job ended so."""

AT_ONCE = 10
"""The signal that is `KeyboardInterrupt` wherever the job is, and each behind it."""

LOOK_SECONDS = 0.5

WORDS_SECONDS = 1.0
"""How long the end of a job waits for its answer to a signal to be printed: nobody may read the output."""

BLOCKED_SECONDS = 3.0
"""How long after a signal the output may take nothing; it is then given up, since the job may wait for it to print."""

_OUTPUTS = (1, 2)
"""Standard output and standard error."""

_REASONS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Interrupts:
    """Takes Ctrl-C and SIGTERM for the length of a block; where that is not in the main thread, it does nothing.

    The block is a job from its row in the record to its last words. SIGTERM is what `docker stop`, `kill` and `ray job
    stop` send. The first signal asks the job to stop, or, while the job is not there yet, is kept for it. The second
    raises `KeyboardInterrupt`, once, and only while the search is `under_way`: what comes before it and behind it is
    short, and would leave the record untrue or processes behind if it were cut. Further ones are ignored, until with
    the `AT_ONCE`th it is raised anywhere: a database, or a callback of the user's own, may hold those moments up.

    The handler itself prints and imports nothing, since it may run in the middle of either; a thread prints its answer.
    Where nobody reads the output, whoever prints waits for ever; a job that is to stop then goes on without its output.

    Args:
        say: prints a line.
        resume: how to resume the job once it is stopped; empty where that is not possible.
    """

    def __init__(self, say: Callable[[str], None], resume: str = "") -> None:
        self._say = say
        self.resume = resume
        """How to resume the job once it is stopped."""
        self._stop: Callable[[str], None] | None = None
        self._reason = ""
        """Of the first signal; empty as long as there was none."""
        self._count = 0
        self._raises = False
        self._before: dict[signal.Signals, Any] = {}
        self._main = threading.current_thread() is threading.main_thread()
        self._words: queue.SimpleQueue[str] = queue.SimpleQueue()  # A handler may put into it at any moment.
        self._printer = threading.Thread(target=self._print, name="answers to signals", daemon=True)
        self._came: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True for the first signal, False for the end of the block."""
        self._watch = threading.Thread(target=self._watch_output, name="output of a stopped job", daemon=True)
        self._wakes = False
        """Whether a signal is this object's own, which interrupts a thread that waits for its output."""

    def __enter__(self) -> Self:
        if self._main:
            self._printer.start()
            self._watch.start()
            self._before = {number: signal.getsignal(number) for number in _REASONS}
            self._take()
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        if self._main:
            self._came.put(False)
            self._words.put("")
            self._printer.join(WORDS_SECONDS)

    def _print(self) -> None:
        while text := self._words.get():
            with suppress(Exception):  # The output may be closed; the job is what matters.
                self._say(text)

    def _watch_output(self) -> None:
        if not self._came.get():
            return
        until = time.monotonic() + BLOCKED_SECONDS
        while True:
            with suppress(queue.Empty):
                if not self._came.get(timeout=0.2):
                    return
            blocked = [number for number in _OUTPUTS if _is_blocked(number)]
            until = until if blocked else time.monotonic() + BLOCKED_SECONDS
            if time.monotonic() > until:
                self._give_up(blocked)

    def _give_up(self, outputs: list[int]) -> None:
        """Lead outputs to nowhere, and have threads that wait for them try again, which write to nowhere then."""
        with open(os.devnull, "wb", buffering=0) as nowhere:
            for number in outputs:
                os.dup2(nowhere.fileno(), number)
        self._wakes = True
        for thread in threading.enumerate():
            if thread.ident is not None and thread is not threading.current_thread():
                with suppress(ProcessLookupError):
                    signal.pthread_kill(thread.ident, signal.SIGTERM)
        time.sleep(0.5)  # The handler runs in the main thread, a moment later.
        self._wakes = False

    def stops(self, stop: Callable[[str], None]) -> None:
        """From now on there is a job, and this stops it gracefully; at once if that was asked for before."""
        if self._main:
            self._take()  # Ray takes SIGTERM for itself whenever it starts (ray 2.60).
        self._stop = stop
        if self._reason:
            stop(self._reason)

    @property
    def reason(self) -> str:
        """Why the job was asked to stop; empty if it was not."""
        return self._reason

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """The block in which a second signal raises `KeyboardInterrupt`; one that came before it does so at once."""
        self._raises = True
        try:
            if self._count > 1:
                raise KeyboardInterrupt
            yield
        finally:
            self._raises = False

    def closing(self) -> None:
        """The search is over, and what it held is being released: no signal is heard any more."""
        self._raises = False
        self._stop = lambda reason: None

    def _take(self) -> None:
        for number in _REASONS:
            signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._wakes:
            return
        self._count += 1
        if (self._count == 2 and self._raises) or self._count >= AT_ONCE:
            interrupt()
        if self._count > 1:
            return
        self._came.put(True)
        self._reason = _REASONS[signal.Signals(number)]
        if self._stop is None:
            later = f"; to resume later: {self.resume}" if self.resume else ""
            self._words.put(f"stopping as soon as the job has started{later}. Ctrl-C again stops now")
        else:
            self._stop(self._reason)  # Whoever follows the job says so, in the job's own loop.


def _is_blocked(output: int) -> bool:
    """Return whether a write to an output would wait for its reader."""
    with suppress(OSError, ValueError):  # It is closed: a write fails at once.
        return not select.select([], [output], [], 0)[1]
    return False


class Requests:
    """Looks for requests to stop in a thread, for the length of a block: who trains in the loop itself hears none.

    Args:
        asked: whether somebody asked for a stop of the job.
        stop: is called then, once.
        hear: is called at each look before that: others may be asked for.
    """

    def __init__(
        self, asked: Callable[[], bool], stop: Callable[[], None], hear: Callable[[], None] = lambda: None
    ) -> None:
        self._asked = asked
        self._stop = stop
        self._hear = hear
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="requests to stop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            if self._asked():
                self._stop()
                return
            self._hear()
