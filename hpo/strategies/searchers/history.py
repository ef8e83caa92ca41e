"""What each suggestion may read of earlier trials: by their numbers alone, whoever was faster; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from hpo.ranges import Scalar
from hpo.strategies.hyperband import Plan
from hpo.strategies.openings import Openings
from hpo.suggestions import Observation


@dataclass(slots=True)
class _Seen:
    """One trial: what it tries, its values by rung, and whether there will be more of them."""

    hyperparameters: dict[str, Scalar]
    values: dict[int, Observation] = field(default_factory=dict)
    over: bool = False

    def add(self, rung: int, value: float) -> None:
        """A value at a rung."""
        # Made once, and read by all suggestions behind it: ten thousand trials would be made ten thousand times.
        self.values[rung] = Observation(hyperparameters=self.hyperparameters, resource=rung, value=value)


class History:
    """The results of a search, opened to each suggestion by a rule on numbers.

    A suggestion waits for what opens to it, and sees nothing else. So what is tried depends on the seed and on values,
    not on how many gangs there are or which was faster.

    Of a plan whose trials are stopped each by itself, as by the median rule, trials are read whole.

    Args:
        plan: the brackets.
        openings: the first suggestion that reads each result.
    """

    def __init__(self, plan: Plan, openings: Openings) -> None:
        self._plan, self._openings = plan, openings
        self._trials: list[_Seen] = []
        self._brackets: list[int] = []
        """The bracket of each trial."""
        self._starts: list[int] = [0]
        """The number of each bracket's first trial, and how many trials there are."""
        for index, bracket in enumerate(plan.brackets):
            self._brackets += [index] * bracket.sizes[0]
            self._starts.append(len(self._brackets))
        self._awaited = self._in_order()
        """The first suggestion that waits, for which trials, and for which of their rungs; by suggestion."""
        self._known = 0
        """Of `_awaited`, those before this one are known."""

    def _in_order(self) -> list[tuple[int, range, int]]:
        first = -1 if self._plan.apart else 0
        awaited = [(opens, range(number, number + 1), first) for number, opens in enumerate(self._openings.firsts)]
        if not self._plan.apart:
            for index, rungs in enumerate(self._openings.rungs):
                trials = range(self._starts[index], self._starts[index + 1])
                awaited += [(opens, trials, rung) for rung, opens in enumerate(rungs, 1)]
        return sorted(awaited, key=itemgetter(0))

    @property
    def begun(self) -> int:
        """How many trials there are."""
        return len(self._trials)

    def reads(self, fewest: int) -> int:
        """See `Openings.reads`."""
        return self._openings.reads(fewest)

    def bracket(self, number: int) -> int:
        """The index of a trial's bracket in the plan."""
        return self._brackets[number]

    def begin(self, hyperparameters: Mapping[str, Scalar]) -> int:
        """The next trial is begun; returns its number."""
        self._trials.append(_Seen(dict(hyperparameters)))
        return len(self._trials) - 1

    def reported(self, number: int, resource: int, value: float) -> None:
        """A trial's value after so many units; only those at a rung count."""
        if resource in self._plan.brackets[self.bracket(number)].rungs:
            self._trials[number].add(resource, value)
            self._settle()

    def ended(self, number: int, resource: int, value: float) -> None:
        """A trial trains no further. One that ended between two rungs, by itself, comes to no other value at the next.

        Args:
            number: the trial's.
            resource: units that it has trained.
            value: of the objective then; not finite if it failed or diverged.
        """
        trial = self._trials[number]
        if resource not in trial.values or not math.isfinite(value):
            rungs = self._plan.brackets[self.bracket(number)].rungs
            rung = next((rung for rung in rungs if rung > resource), rungs[-1])
            trial.add(rung, value)
        trial.over = True
        self._settle()

    def gave_up(self, number: int) -> None:
        """A trial was stopped by a person, wherever it stood: its values at rungs are all that is known of it."""
        self._trials[number].over = True
        self._settle()

    def reached(self, number: int) -> int:
        """The last rung at which a trial's value is known; 0 before the first."""
        return max(self._trials[number].values, default=0)

    def ready(self, number: int) -> bool:
        """Whether all that the suggestion of a number reads is known."""
        return self._known == len(self._awaited) or self._awaited[self._known][0] > number

    def read(self, number: int) -> tuple[list[Observation], list[dict[str, Scalar]]]:
        """What the suggestion of a number reads, and the configurations of trials whose values are still to come."""
        seen: list[Observation] = []
        unseen: list[dict[str, Scalar]] = []
        further = [sum(opens <= number for opens in of) for of in self._openings.rungs]
        for other, trial in enumerate(self._trials[:number]):
            values: list[Observation] = []
            if self._openings.firsts[other] <= number:
                index = self.bracket(other)
                rungs = self._plan.brackets[index].rungs
                opened = rungs if self._plan.apart else rungs[: 1 + further[index]]
                values = [trial.values[rung] for rung in opened if rung in trial.values]
            seen += values
            if not values:
                unseen.append(trial.hyperparameters)
        return seen, unseen

    def _settle(self) -> None:
        while self._known < len(self._awaited):
            _, trials, rung = self._awaited[self._known]
            if trials.stop > len(self._trials) or not all(self._reached(trial, rung) for trial in trials):
                return
            self._known += 1

    def _reached(self, number: int, rung: int) -> bool:
        trial = self._trials[number]
        return trial.over or self._plan.brackets[self.bracket(number)].rungs[rung] in trial.values
