"""Billing ledger: every second that a gang is held, split into starting, training, checkpointing and idle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from hpo.record import LedgerRow
from trainers import steady
from trainers.gangs import Segment
from trainers.process import whole


class Kind(StrEnum):
    """Kind of a billed second."""

    STARTING = "starting"
    TRAINING = "training"
    CHECKPOINTING = "checkpointing"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Worker-seconds of one kind, for a trial, or for the gang itself where `trial_id` is empty.

    It lasted `worker_seconds / workers` seconds, until `at`; a gang's entries follow each other without gaps.
    """

    trial_id: str
    gang: str
    kind: Kind
    worker_seconds: float
    at: float
    workers: int


class Ledger:
    """Accounts for gangs second by second: what it books adds up to workers times the time each gang was held.

    Args:
        book: is given the entries as they arise.
        clock: seconds since the epoch; it does not jump.
        before: what was booked before this run, as the record has it.
        gang_seconds: in which there was a gang before this run.
    """

    def __init__(
        self,
        book: Callable[[list[Entry]], None],
        clock: Callable[[], float] = steady.now,
        before: Iterable[LedgerRow] = (),
        gang_seconds: float = 0.0,
    ) -> None:
        self._book = book
        self._clock = clock
        self._workers: dict[str, int] = {}
        self._until: dict[str, float] = {}
        self.with_gang: tuple[float, float | None] = (gang_seconds, None)
        """Seconds in which there was a gang, until there was none; and since when there is one again, if there is."""
        self.totals: dict[Kind, float] = dict.fromkeys(Kind, 0.0)
        self.by_trial: dict[str, float] = defaultdict(float)
        self._before = set()
        for row in before:
            self._before.add(row.gang)
            self.totals[Kind(row.kind)] += row.worker_seconds
            self.by_trial[row.trial_id] += row.worker_seconds

    def up(self, gang: str, workers: int, held_since: float) -> None:
        """A gang came up; its time since `held_since`, or since it was lost, went into starting."""
        if not self._until:
            self.with_gang = (self.gang_seconds, self._clock())
        self._workers[gang] = workers
        self._until.setdefault(gang, held_since)
        self._account(gang, "", [(Kind.STARTING, None)])

    def assigned(self, gang: str) -> None:
        """A free gang got work; the time before was idle."""
        self._account(gang, "", [(Kind.IDLE, None)])

    def served(self, gang: str, trial_id: str, segment: Segment | None) -> None:
        """An assignment ended: training and checkpointing as the worker measured them, the rest idle.

        The time of a trial that failed, `segment` None, went into training.
        """
        if segment is None:
            self._account(gang, trial_id, [(Kind.TRAINING, None)])
            return
        measured = [
            (Kind.STARTING, segment.starting_seconds),
            (Kind.TRAINING, segment.training_seconds),
            (Kind.CHECKPOINTING, segment.checkpointing_seconds),
        ]
        self._account(gang, trial_id, [*measured, (Kind.IDLE, None)])

    def lost(self, gang: str, trial_id: str) -> None:
        """A gang lost its workers in the middle of an assignment: billed all the same, as training."""
        if gang in self._until:
            self._account(gang, trial_id, [(Kind.TRAINING if trial_id else Kind.IDLE, None)])

    def ended(self, gang: str) -> None:
        """A gang was given back."""
        if gang in self._until:
            self._account(gang, "", [(Kind.IDLE, None)])
            del self._until[gang]
            self._without(self._clock())

    def close(self) -> None:
        """Every gang was given back, at this moment."""
        now = self._clock()
        with whole():  # Else a second Ctrl-C would leave the rest of them in no entry.
            for gang in list(self._until):
                self._account(gang, "", [(Kind.IDLE, None)], now)
            self._until.clear()
            self._without(now)

    @property
    def gangs(self) -> int:
        """How many gangs came up."""
        return len(self._workers.keys() | self._before)

    @property
    def held(self) -> dict[str, int]:
        """The workers of each gang that is held, as far as it came up."""
        return {gang: self._workers[gang] for gang in self._until}

    @property
    def gang_seconds(self) -> float:
        """Seconds in which there was a gang, until now; the others were waited for one."""
        seconds, since = self.with_gang
        return seconds if since is None else seconds + self._clock() - since

    @property
    def total(self) -> float:
        """All billed worker-seconds."""
        return sum(self.totals.values())

    @property
    def open(self) -> float:
        """Worker-seconds for which gangs have been held since their last entries: known, but not yet for what."""
        now = self._clock()
        return sum(max(0.0, now - until) * self._workers[gang] for gang, until in self._until.items())

    def _without(self, now: float) -> None:
        """Stops counting the seconds with a gang where there is none any more."""
        seconds, since = self.with_gang
        if since is not None and not self._until:
            self.with_gang = (seconds + now - since, None)

    def _account(
        self, gang: str, trial_id: str, parts: Iterable[tuple[Kind, float | None]], now: float | None = None
    ) -> None:
        """Books the time since the gang's last entry: measured parts, never more than has passed; None is the rest."""
        with whole():  # Else a second Ctrl-C would leave seconds that are counted and in no entry.
            self._account_whole(gang, trial_id, parts, self._clock() if now is None else now)

    def _account_whole(self, gang: str, trial_id: str, parts: Iterable[tuple[Kind, float | None]], now: float) -> None:
        workers = self._workers[gang]
        left = max(0.0, now - self._until[gang])
        entries = []
        for kind, seconds in parts:
            part = left if seconds is None else min(left, seconds)
            left -= part
            if part > 0:
                worker_seconds = part * workers
                entries.append(
                    Entry(
                        trial_id=trial_id,
                        gang=gang,
                        kind=kind,
                        worker_seconds=worker_seconds,
                        at=now - left,
                        workers=workers,
                    )
                )
                self.totals[kind] += worker_seconds
                self.by_trial[trial_id] += worker_seconds
        self._until[gang] = now
        if entries:
            self._book(entries)
