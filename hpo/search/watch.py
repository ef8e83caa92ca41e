"""Whoever follows a running job: its record, the terminal, and users' own callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from hpo.cost import Entry
from hpo.search.trial import TrialRun
from hpo.strategies import Cut
from trainers.gangs import Report

if TYPE_CHECKING:
    from hpo.search.controller import Controller


class Watcher(Protocol):
    """Is called from the job's own loop, so that nothing changes while it looks; it must not take long."""

    def trial(self, run: TrialRun) -> None:
        """A trial's state changed; the un-tuned run's too, whose id is `UNTUNED`."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """A trial reported, perhaps again what it reported while it was served."""

    def rung(self, cut: Cut) -> None:
        """A rung of Hyperband was decided."""

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Worker-seconds were billed."""

    def progress(self, controller: Controller) -> None:
        """The loop goes round: before it waits for events, half a second at most while gangs are on Ray."""


class Record(Watcher, Protocol):
    """What keeps a job's trials, reports and billed seconds as they come."""

    def leave_out(self, last: int) -> None:
        """The job is complete at the trial of this number: what is known of those behind it does not count."""

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked for the job to be stopped."""
