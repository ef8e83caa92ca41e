"""Recall: the interface to results of an earlier run, asked before a gang is; and the order in which they came."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ray.tune.experiment import Trial

from hpo.forks import Fork
from hpo.record import LedgerRow
from hpo.search.trial import TrialRun
from trainers.gangs import Served

logger = logging.getLogger(__name__)

CHOSEN: Literal["chosen"] = "chosen"
TOLD: Literal["told"] = "told"
STOPPED: Literal["stopped"] = "stopped"


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


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Turn:
    """One step of a search whose decisions follow from the order of its steps.

    Args:
        number: its place among all turns of the job, from 1.
        trial_id: the trial.
        kind: `CHOSEN` to be trained on, `TOLD`: scheduler and searcher were told what its assignment came to, or
            `STOPPED` by a person, while it was on no gang.
        resource: units at which the trial then stood.
    """

    number: int
    trial_id: str
    kind: str
    resource: int


def turns_in(trial_id: str, row: Mapping[str, Any]) -> list[Turn]:
    """The turns of a trial, as its row of the record has them."""
    return [
        Turn(number=number, trial_id=trial_id, kind=kind, resource=resource)
        for kind, turns in row.items()
        for number, resource in turns
    ]


class Recall(Protocol):
    """Answers a search, and its observers, from what was recorded before; false once it has answered all."""

    @property
    def before(self) -> Before:
        """The job's usage; of a job without trials, too."""

    @property
    def turns(self) -> Sequence[Turn]:
        """The order in which trials were chosen and told, as far as it was kept."""

    def __bool__(self) -> bool:
        """Whether there is anything left to answer."""

    def knows(self, trial_id: str) -> bool:
        """Whether there is anything left to answer of a trial."""

    def suggested(self, number: int) -> Mapping[str, Any] | None:
        """The hyperparameters of the trial of that number; None if there was none."""

    def forked(self, fork: Fork) -> tuple[int, Mapping[str, Any]] | None:
        """The number and the hyperparameters of the trial that came of a decision; None if there was none."""

    @property
    def numbers(self) -> int:
        """The first number behind those of all trials that there were."""

    def begin(self, run: TrialRun) -> None:
        """Gives a trial that is made again what is known of it beside its training."""

    def answer(self, run: TrialRun, stop: int) -> Served | None:
        """The result of training a trial on from where it stands; None where that is not known.

        Args:
            run: the trial.
            stop: the units at which its assignment would end, or ended where it was halted.

        Raises:
            StorageError: its checkpoint cannot be looked at; ask again later.
        """

    def drop(self, trial_id: str) -> None:
        """A trial has ended otherwise than it did: what else it came to is not asked for."""

    def all_told(self) -> None:
        """All turns were taken again: what trials may still come to is not known."""

    def ended_at(self, run: TrialRun) -> float | None:
        """When a trial that has ended had ended before, with as many units; None where it had not."""

    def reached(self, trial_id: str, resource: int) -> bool:
        """Whether a trial had come so far."""


class FirstRun:
    """The recall of a job that begins: there is nothing to answer."""

    before = Before()
    turns = ()

    def __bool__(self) -> bool:
        return False

    def knows(self, trial_id: str) -> bool:
        """See `Recall.knows`."""
        return False

    def suggested(self, number: int) -> None:
        """See `Recall.suggested`."""

    numbers = 0

    def forked(self, fork: Fork) -> None:
        """See `Recall.forked`."""

    def begin(self, run: TrialRun) -> None:
        """See `Recall.begin`."""

    def answer(self, run: TrialRun, stop: int) -> None:
        """See `Recall.answer`."""

    def drop(self, trial_id: str) -> None:
        """See `Recall.drop`."""

    def all_told(self) -> None:
        """See `Recall.all_told`."""

    def ended_at(self, run: TrialRun) -> None:
        """See `Recall.ended_at`."""

    def reached(self, trial_id: str, resource: int) -> bool:
        """See `Recall.reached`."""
        return False


class Turns:
    """Numbers the turns of a search, behind those of the run before, which it goes through again first.

    A trial's turns are in its row of the record, beside what it was told, and rows are written in their order: whenever
    a driver dies, the record has every turn up to some number, and none behind it. What was chosen and not told by then
    waits for a gang again.

    Args:
        known: those of the run before.
        kept: whether turns are kept; else their order makes no difference.
    """

    def __init__(self, known: Iterable[Turn], *, kept: bool) -> None:
        self._kept = kept
        self._left = deque(sorted(known) if kept else ())
        self._last = self._left[-1].number if self._left else 0
        self.known = bool(self._left)
        """Whether the run before kept them, so that what it knew is told in their order and no other."""

    def take(self, run: TrialRun, kind: str) -> bool:
        """A trial has its turn; returns whether it is a new one, which is then to be recorded."""
        if not self._kept or self._left:
            return False
        self._last += 1
        run.turns = {**run.turns, kind: [*run.turns.get(kind, ()), [self._last, run.resource]]}
        return True

    def again(
        self,
        runs: Mapping[str, TrialRun],
        choose: Callable[[], TrialRun | None],
        all_told: Callable[[], None],
        stop: Callable[[TrialRun], object],
    ) -> Iterator[tuple[TrialRun, int]]:
        """Goes through the turns of the run before: each trial that is to be told, and the units that it came to.

        Args:
            runs: every trial so far, by its id.
            choose: makes the search choose what is trained next, a new trial perhaps.
            all_told: is called once they are over, if the search went through all of them.
            stop: ends a trial as a person stopped it.
        """
        while self._left:
            turn = self._left[0]
            run = runs.get(turn.trial_id)
            under_way = run is not None and run.trial.status == Trial.RUNNING
            if run is not None and under_way and turn.kind == TOLD:
                yield run, turn.resource
            elif turn.kind == STOPPED:
                if run is not None and not run.trial.is_finished():
                    stop(run)
            elif turn.kind == CHOSEN and not under_way:  # One that lost its workers was chosen twice.
                self._check(turn, choose())
            if self._left:
                self._left.popleft()
        for run in runs.values():
            if run.trial.status == Trial.RUNNING:
                run.trial.set_status(Trial.PENDING)
        if self.known:
            all_told()

    def _check(self, turn: Turn, chosen: TrialRun | None) -> None:
        """The trial that was chosen is under way; if it is another than before, the order is given up."""
        if chosen is not None and chosen.id == turn.trial_id:
            chosen.trial.set_status(Trial.RUNNING)
            return
        logger.warning(
            "the strategy does not decide as it did: trial %s went on in turn %d, and now %s; what is known is told in "
            "any order, and what follows may differ",
            turn.trial_id,
            turn.number,
            chosen.id if chosen else "none",
        )
        self._left.clear()
        self.known = False
