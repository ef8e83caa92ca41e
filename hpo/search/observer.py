"""Observer: the interface of the record, callbacks and views of a running job, and the state that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hpo.cost import Entry, Ledger, Tariff
from hpo.record import AdditionRow
from hpo.search.trial import TrialRun
from hpo.strategies import Cut
from trainers.gangs import Report

STOP_REQUESTED = "stop requested"
"""Why a job stops that another process asked to stop, through the record."""

INTERRUPTED = "interrupted by Ctrl-C"
TERMINATED = "terminated by SIGTERM"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A job at one moment.

    Args:
        seconds: since its start, without those in which nobody drove it.
        seconds_left: that the rest takes at most, at the pace so far; None before enough is known. It counts the gangs
            that are up: more of them shorten it, and so does what Hyperband still stops.
        first_step_seconds: from its start to its first training step; None before that.
        trained: units trained by all trials, the un-tuned run not counted.
        ahead: units that trials have reported since the end of their last assignments.
        gangs_busy: gangs that serve an assignment.
        gangs_idle: gangs that are up and have nothing to serve.
        gangs_starting: gangs that are on their way.
        gangs: what each gang does that is up or coming back, as `Roster.told` has it.
        untuned: whether the un-tuned run was begun and has not ended.
        storage_away: why checkpoints cannot be read or written at present; empty while they can.
        stopped: why the job stops; empty if it does not.
        ledger: the billed seconds, up to any later moment too.
        tariff: what they cost, where that is known.
    """

    seconds: float
    seconds_left: float | None
    first_step_seconds: float | None
    trained: int
    ahead: int
    gangs_busy: int
    gangs_idle: int
    gangs_starting: int
    gangs: Mapping[str, Mapping[str, Any]]
    untuned: bool
    storage_away: str
    stopped: str
    ledger: Ledger
    tariff: Tariff | None

    @property
    def gangs_up(self) -> int:
        """Gangs that are up."""
        return self.gangs_busy + self.gangs_idle


class Observer(Protocol):
    """Is called from the job's own loop, so that nothing changes while it looks; it must not take long."""

    def trial(self, run: TrialRun) -> None:
        """A trial's state changed; the un-tuned run's too, whose id is `UNTUNED`."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """A trial reported: each step once, rising, whatever is trained again after a loss or a resume."""

    def rung(self, cut: Cut) -> None:
        """A rung of Hyperband was decided."""

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Worker-seconds were billed."""

    def progress(self, state: JobState) -> None:
        """The loop goes round: before it waits for events, half a second at most while gangs are on Ray."""


class Record(Observer, Protocol):
    """The record of a search: keeps its trials, reports and billed seconds as they come."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """A trial reported, perhaps again what it reported while it was served: the later report counts."""

    def leave_out(self, last: int) -> None:
        """The job is complete at the trial of this number: what is known of those behind it does not count."""

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked for the job to be stopped."""

    @property
    def additions(self) -> Sequence[AdditionRow]:
        """The values that persons gave for trials while the job ran, in the order in which they were heard of."""

    @property
    def stops(self) -> Mapping[str, str]:
        """Who asked for which trial to be stopped, by the trial's id, as far as that was heard of."""
