"""Standings: the bracket of each trial, the rung that it trains to, and whether it trains, waits or has ended; pure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from hpo.ranking import Rank, Ranking
from hpo.strategies.hyperband.plan import Plan
from trainers.errors import ConfigurationError


class State(Enum):
    """Where a trial stands."""

    TRAINING = "training"
    """Has units to train before its next rung, running or not."""
    WAITING = "waiting"
    """Has reached a rung that others have yet to reach."""
    STOPPED = "stopped"
    """Was cut at a rung."""
    FINISHED = "finished"
    """Has reached `max_resource`, or ended by itself."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A rung that was decided.

    Args:
        bracket: index of its bracket in the plan.
        resource: units at which its trials were compared.
        went_on: the trials that train to the next rung, best first.
        stopped: those that were cut, best first.
    """

    bracket: int
    resource: int
    went_on: tuple[str, ...]
    stopped: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Entry:
    """A trial: its number and its bracket, and where it stands.

    Args:
        number: how many trials were added before it.
        bracket: index of its bracket in the plan.
        rung: index of the rung that it trains to, or waits at.
        state: where it stands.
        value: the objective at the last rung that it came to.
    """

    number: int
    bracket: int
    rung: int = 0
    state: State = State.TRAINING
    value: float = math.nan


class Standings(ABC):
    """Where the trials of a plan stand; a subclass decides at a rung which of them go on.

    Trials fill the brackets in the order in which they are added.

    Args:
        plan: the brackets.
        maximize: whether larger values are better.
    """

    def __init__(self, plan: Plan, *, maximize: bool) -> None:
        self.plan = plan
        self._ranking = Ranking(maximize=maximize)
        self._entries: dict[str, Entry] = {}
        self._added = [0] * len(plan.brackets)
        # By bracket, so that no report looks at the others of it.
        self._training: list[dict[str, None]] = [{} for _ in plan.brackets]
        self._filling = 0
        self._closed = False
        self.cuts: list[Cut] = []
        """Every rung decided so far, in the order of decision."""

    def add(self, trial: str) -> int:
        """Puts a new trial into the first bracket with room; returns the bracket's index.

        Raises:
            ConfigurationError: the plan holds no more trials.
        """
        while self._filling < len(self.plan.brackets):
            index = self._filling
            if self._added[index] < self.plan.brackets[index].sizes[0]:
                self._entries[trial] = Entry(number=len(self._entries), bracket=index)
                self._added[index] += 1
                self._training[index][trial] = None
                return index
            self._filling += 1
        raise ConfigurationError(f"the plan is for {self.plan.trials} trials and holds as many; give a larger max_jobs")

    def state(self, trial: str) -> State:
        """Where it stands."""
        return self._entries[trial].state

    def bracket(self, trial: str) -> int:
        """The index of its bracket."""
        return self._entries[trial].bracket

    def milestone(self, trial: str) -> int:
        """The units at which it next waits, or ends."""
        entry = self._entries[trial]
        return self.plan.brackets[entry.bracket].rungs[entry.rung]

    def next_rung(self, trial: str, resource: int) -> int:
        """The first rung of its bracket behind `resource` units."""
        rungs = self.plan.brackets[self._entries[trial].bracket].rungs
        return next((rung for rung in rungs if rung > resource), self.plan.max_resource)

    def report(self, trial: str, resource: int, value: float) -> set[str]:
        """A trial's value after so many units, absolute. Returns the trials this decides, perhaps itself."""
        entry, milestone = self._entries[trial], self.milestone(trial)
        if entry.state is not State.TRAINING or resource < milestone:
            return set()
        if milestone == self.plan.max_resource:
            return self._leave(trial, State.FINISHED) | {trial}
        del self._training[entry.bracket][trial]
        entry.value, entry.state = value, State.WAITING
        return self._come(trial, entry)

    def fail(self, trial: str) -> set[str]:
        """A trial failed. Returns the trials this decides."""
        return self._leave(trial, State.FAILED)

    def finish(self, trial: str) -> set[str]:
        """A trial ended by itself, or was stopped from outside. Returns the trials this decides."""
        return self._leave(trial, State.FINISHED)

    def _leave(self, trial: str, state: State) -> set[str]:
        entry = self._entries[trial]
        if entry.state not in (State.TRAINING, State.WAITING):
            return set()
        waited, entry.state = entry.state is State.WAITING, state
        if not waited:
            del self._training[entry.bracket][trial]
        return self._lose(trial, entry, waited=waited)

    # ---- for subclasses

    @abstractmethod
    def _come(self, trial: str, entry: Entry) -> set[str]:
        """A trial waits at its rung, with its value. Returns the trials this decides."""

    @abstractmethod
    def _lose(self, trial: str, entry: Entry, *, waited: bool) -> set[str]:
        """A trial failed, finished or was stopped from outside. Returns the trials this decides.

        Args:
            trial: its name.
            entry: it has its last state.
            waited: it had come to its rung and waited there; else it was on its way.
        """

    def _is_whole(self, index: int) -> bool:
        """Whether all trials of a bracket were added."""
        return self._closed or self._added[index] == self.plan.brackets[index].sizes[0]

    def _rank(self, trial: str) -> Rank:
        entry = self._entries[trial]
        return self._ranking.rank(entry.value, 0, entry.number)
