"""Communication of a worker's steps: bytes that it hands over, and seconds that steps stand still for others."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

import torch
from torch import Tensor

COMMUNICATION = "communication"
"""Key of a segment's details."""

WAITING = "waiting for other workers"
"""Name of these spans in a profile."""

_BEHIND = 32
"""Spans that a GPU may be behind with before the oldest are read."""


class Clock(Protocol):
    """Clock that steps are measured on."""

    def mark(self) -> Any:
        """A moment."""

    def seconds(self, start: Any, end: Any) -> float:
        """What passed between two moments; waits until the second one has come."""


class HostClock:
    """Time of this process.

    Args:
        now: in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.mark = now

    def seconds(self, start: float, end: float) -> float:
        """See `Clock.seconds`."""
        return end - start


class DeviceClock:
    """Time of a GPU's current stream, which the process runs ahead of: a wait there holds up nothing here."""

    def mark(self) -> Any:
        """See `Clock.mark`."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, start: Any, end: Any) -> float:
        """See `Clock.seconds`."""
        end.synchronize()
        return float(start.elapsed_time(end)) / 1000


class Summing(Protocol):
    """What of `trainers.pytorch.distribution.Peers` is needed here."""

    @property
    def rank(self) -> int:
        """See `Peers.rank`."""

    @property
    def world_size(self) -> int:
        """See `Peers.world_size`."""

    def sum(self, values: Tensor) -> Tensor:
        """See `Peers.sum`."""


class Communication:
    """What the steps of one worker hand to others and wait for; every `Distribution` keeps one.

    A step lasts from the end of the one before it, so that loading and the forward pass belong to it; the first of a
    pass begins with its backward pass. What lies between passes (evaluation, checkpoints) belongs to none. A
    distribution calls `begin` as a backward pass begins, `end` after each update and `pause` at the end of a pass; it
    adds to `bytes`, and waits within `with communication.waiting:`.

    Args:
        clock: what steps are measured on; None: the clock of the first loss's device.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.bytes = 0
        """Bytes handed to collectives or servers, and taken from servers."""
        self.steps = 0
        """Updates that this worker took part in."""
        self.on_step: Callable[[], None] | None = None
        """Is called after each step; its time belongs to none."""
        self.named = False
        """Whether waits have a name in the profile that is being made."""
        self._clock = clock
        self._since: Any = None
        self._spans = _Spans()
        self._waits = _Spans()
        self.waiting = _Waiting(self)

    def begin(self, device: torch.device) -> None:
        """A backward pass begins; where a step is going on, that one goes on."""
        if self._since is None:
            self._clock = self._clock or (DeviceClock() if device.type == "cuda" else HostClock())
            self._since = self._clock.mark()

    def end(self) -> None:
        """A step is over, and the next one begins."""
        self.steps += 1
        clock = self._clock
        if clock is not None:
            now = clock.mark()
            if self._since is not None:
                self._spans.add(clock, self._since, now)
            self._since = now
        if self.on_step is not None:
            self.on_step()
            self._since = None if clock is None else clock.mark()

    def pause(self) -> None:
        """A pass is over: what follows is no step's."""
        self._since = None

    def mark(self) -> Any:
        """A moment on the clock of the steps; None before the first."""
        return None if self._clock is None else self._clock.mark()

    def waited_since(self, moment: Any) -> None:
        """The step has stood still since a moment."""
        if self._clock is not None and moment is not None:
            self._waits.add(self._clock, moment, self._clock.mark())

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds of all steps so far, and those of them that were waited in."""
        return tuple(spans.total(self._clock) for spans in (self._spans, self._waits))  # type: ignore[return-value]

    def details(self, peers: Summing) -> dict[str, Any]:
        """All workers' figures by rank, for a segment's details; every worker calls it. Empty without steps or peers.

        Raises:
            TrialError: a worker did not come.
        """
        if peers.world_size == 1:
            return {}
        figures = torch.zeros(peers.world_size, 4, dtype=torch.float64, device="cpu")
        stepped, waited = self.seconds
        figures[peers.rank] = figures.new_tensor([self.steps, self.bytes, stepped, waited])
        rows = peers.sum(figures).tolist()
        if not any(row[0] for row in rows):
            return {}
        names = ("steps", "bytes", "step_seconds", "waiting_seconds")
        of_all = {name: {str(rank): row[place] for rank, row in enumerate(rows)} for place, name in enumerate(names)}
        whole = {name: {rank: int(value) for rank, value in of_all[name].items()} for name in names[:2]}
        return {COMMUNICATION: {**of_all, **whole}}


class _Spans:
    """Adds up spans of time; those that a GPU has not come to yet are read later."""

    def __init__(self) -> None:
        self._total = 0.0
        self._open: deque[tuple[Any, Any]] = deque()

    def add(self, clock: Clock, start: Any, end: Any) -> None:
        if isinstance(clock, HostClock):
            self._total += clock.seconds(start, end)
            return
        self._open.append((start, end))
        if len(self._open) > _BEHIND:
            self._total += clock.seconds(*self._open.popleft())

    def total(self, clock: Clock | None) -> float:
        while self._open and clock is not None:
            self._total += clock.seconds(*self._open.popleft())
        return self._total


class _Waiting:
    """A block that a step stands still in."""

    def __init__(self, communication: Communication) -> None:
        self._of = communication
        self._start: Any = None
        self._record: Any = None

    def __enter__(self) -> None:
        if self._of.named:
            self._record = torch.profiler.record_function(WAITING)
            self._record.__enter__()
        self._start = self._of.mark()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._of.waited_since(self._start)
        if self._record is not None:
            self._record.__exit__(kind, error, at)
            self._record = None
