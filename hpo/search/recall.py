"""Recall: the interface to results of an earlier run, asked before a gang is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hpo.record import LedgerRow
from hpo.search.trial import TrialRun
from trainers.gangs import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Usage of a job before it was resumed.

    Args:
        seconds: of wall time.
        gang_seconds: those of them in which it had a gang.
        first_step_seconds: from its start to its first training step; None where there was none.
        ledger: what was billed.
        unbilled: what was not, since its driver died before it could.
    """

    seconds: float = 0.0
    gang_seconds: float = 0.0
    first_step_seconds: float | None = None
    ledger: tuple[LedgerRow, ...] = ()
    unbilled: tuple[LedgerRow, ...] = ()


class Recall(Protocol):
    """Answers a search, and its observers, from what was recorded before; false once it has answered all."""

    @property
    def before(self) -> Before:
        """The job's usage; of a job without trials, too."""

    def __bool__(self) -> bool:
        """Whether there is anything left to answer."""

    def knows(self, trial_id: str) -> bool:
        """Whether there is anything left to answer of a trial."""

    def suggested(self, number: int) -> Mapping[str, Any] | None:
        """The hyperparameters of the trial of that number; None if there was none."""

    def begin(self, run: TrialRun) -> None:
        """Gives a trial that is made again what is known of it beside its training."""

    def answer(self, run: TrialRun, stop: int) -> Served | None:
        """The result of training a trial on from where it stands; None where that is not known.

        Args:
            run: the trial.
            stop: the units at which its assignment would end.

        Raises:
            StorageError: its checkpoint cannot be looked at; ask again later.
        """

    def ended_at(self, run: TrialRun) -> float | None:
        """When a trial that has ended had ended before, with as many units; None where it had not."""

    def reached(self, trial_id: str, resource: int) -> bool:
        """Whether a trial had come so far."""


class FirstRun:
    """The recall of a job that begins: there is nothing to answer."""

    before = Before()

    def __bool__(self) -> bool:
        return False

    def knows(self, trial_id: str) -> bool:
        """See `Recall.knows`."""
        return False

    def suggested(self, number: int) -> None:
        """See `Recall.suggested`."""

    def begin(self, run: TrialRun) -> None:
        """See `Recall.begin`."""

    def answer(self, run: TrialRun, stop: int) -> None:
        """See `Recall.answer`."""

    def ended_at(self, run: TrialRun) -> None:
        """See `Recall.ended_at`."""

    def reached(self, trial_id: str, resource: int) -> bool:
        """See `Recall.reached`."""
        return False
