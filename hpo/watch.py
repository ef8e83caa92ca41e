"""Whoever follows a running job: the terminal, and users' own callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hpo.controller import Controller
from hpo.hyperband import Cut
from hpo.search import TrialRun
from trainers.assignment import Report


class Watcher(Protocol):
    """Is called from the job's own loop, so that nothing changes while it looks; it must not take long."""

    def trial(self, run: TrialRun) -> None:
        """A trial's state changed; the un-tuned run's too, whose id is `UNTUNED`."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """A trial reported, perhaps again what it reported while it was served."""

    def rung(self, cut: Cut) -> None:
        """A rung of Hyperband was decided."""

    def progress(self, controller: Controller) -> None:
        """The loop goes round: before it waits for events, half a second at most while gangs are on Ray."""
