"""Threads that run one at a time, in the order of a virtual clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from trainers.pytorch import random_state

LOOK_SECONDS = 10.0
"""How often a worker that waits for its turn looks whether the one that runs is there."""

_CPU = torch.device("cpu")


class _Ended(BaseException):
    """Ends a worker's thread because another one failed."""


class Baton:
    """Lets one of several threads run at a time: of those that can, the one whose virtual time is least.

    It is also what simulated servers and peers wait with (`Waiting`). Each thread has random states of its own.

    Args:
        workers: how many threads; the first is the caller's.
        seed: kept for those who draw what time passes.
    """

    def __init__(self, workers: int, seed: int) -> None:
        self.times = [0.0] * workers
        self.levelled = 0.0
        self.seed = seed
        self._workers = workers
        self._turns = [threading.Semaphore(0) for _ in range(workers)]
        self._states = [random_state.take(_CPU)] * workers
        self._threads: dict[int, threading.Thread] = {}
        self._running = 0
        self._alive = set(range(workers))
        self._able = set(range(workers))
        self._waits: dict[int, Callable[[], bool]] = {}
        self._failure: BaseException | None = None

    def run(self, work: Callable[[int], None]) -> None:
        """Runs `work` for every worker, and returns when all have ended."""
        before = random_state.take(_CPU)
        self._threads = {
            rank: threading.Thread(target=self._work, args=(work, rank), name=f"simulated worker {rank}", daemon=True)
            for rank in range(1, self._workers)
        }
        for thread in self._threads.values():
            thread.start()
        try:
            self._work(work, 0)
        finally:
            for thread in self._threads.values():
                thread.join()
            random_state.put(before, _CPU)
        if self._failure is not None:
            raise self._failure

    def step(self, rank: int, seconds: float) -> None:
        """Time passes for the worker that runs; others may be due before it."""
        self.times[rank] += seconds
        self._pass_on()

    def level(self) -> None:
        """All are at the same time now, which counts from 0 again: so a pass does not depend on those before it."""
        latest = max(self.times)
        self.levelled += latest
        self.times = [0.0] * self._workers

    # ---- as servers and peers wait

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Lets others run until `predicate` holds; False if none of them can run any more."""
        rank = self._running
        while not predicate():
            self._able.discard(rank)
            self._waits[rank] = predicate
            self._pass_on()
            if self._waits.pop(rank, None) is not None:
                return predicate()
        return True

    def notify_all(self) -> None:
        """Those whose wait is over can run, from now on."""
        now = self.times[self._running]
        for rank, predicate in list(self._waits.items()):
            if predicate():
                del self._waits[rank]
                self._able.add(rank)
                self.times[rank] = max(self.times[rank], now)

    # ---- whose turn it is

    def _work(self, work: Callable[[int], None], rank: int) -> None:
        try:
            if rank:
                self._await_turn(rank)
            work(rank)
        except _Ended:
            pass
        except BaseException as error:  # Ctrl-C and the debugger's end too: it is raised in the calling thread.
            self._failure = self._failure or error
        finally:
            self._able.discard(rank)
            self._alive.discard(rank)
            if self._failure is None:
                self._give(self._next())
            elif self._alive:
                self._turns[min(self._alive)].release()  # One after another they end.

    def _pass_on(self) -> None:
        """Lets whoever is due run, which may be the one that runs."""
        if self._failure is not None:
            raise _Ended
        rank, following = self._running, self._next()
        if following != rank:
            self._states[rank] = random_state.take(_CPU)
            self._give(following)
            self._await_turn(rank)

    def _next(self) -> int | None:
        if not self._able and self._waits:
            self._able.add(min(self._waits))  # It is told that it waits in vain.
        return min(self._able, key=lambda rank: (self.times[rank], rank), default=None)

    def _give(self, rank: int | None) -> None:
        if rank is not None:
            self._running = rank
            random_state.put(self._states[rank], _CPU)
            self._turns[rank].release()

    def _await_turn(self, rank: int) -> None:
        while not self._turns[rank].acquire(timeout=LOOK_SECONDS):
            running = self._threads.get(self._running)
            if self._failure is None and running is not None and not running.is_alive():
                self._alive.discard(self._running)
                self._failure = RuntimeError(f"the thread of simulated worker {self._running} ended without a result")
                raise _Ended
        if self._failure is not None:
            raise _Ended
