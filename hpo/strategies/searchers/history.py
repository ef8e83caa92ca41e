"""What each suggestion may read of earlier trials: by their numbers alone, whoever was faster; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpo.ranges import Scalar
from hpo.strategies.hyperband import Plan
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

    Suggestion i reads the first rung of trials 0 to i - `lag`, and a bracket's rung r behind the first once i is r
    lags behind the bracket's last trial. It waits for all of that, and sees nothing else. So what is tried depends
    on the seed and on values, not on how many gangs there are or which was faster. While a search with up to `lag`
    trials at once comes from one suggestion to the next but one lag, what that one reads is mostly trained already.

    Of a plan whose trials are stopped each by itself, as by the median rule, it reads trials 0 to i - `lag` whole.

    Args:
        plan: the brackets.
        lag: trials between a suggestion and the last whose first rung it reads; 1 or more.
    """

    def __init__(self, plan: Plan, lag: int) -> None:
        self._plan, self._lag = plan, lag
        self._trials: list[_Seen] = []
        self._brackets: list[int] = []
        """The bracket of each trial."""
        self._behind: list[int] = []
        """The number behind each bracket's last trial."""
        for index, bracket in enumerate(plan.brackets):
            self._brackets += [index] * bracket.sizes[0]
            self._behind.append(len(self._brackets))
        self._settled = 0
        """Trials before this one have all reached their first rung, or ended; their last, where it reads them whole."""
        self._rungs = [0] * len(plan.brackets)
        """How many rungs of a bracket are known of all its trials, once it is full."""
        self._whole = 0
        """Brackets before this one are known whole."""

    @property
    def begun(self) -> int:
        """How many trials there are."""
        return len(self._trials)

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
            self._settle(number)

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
        self._settle(number)

    def reached(self, number: int) -> int:
        """The last rung at which a trial's value is known; 0 before the first."""
        return max(self._trials[number].values, default=0)

    def ready(self, number: int) -> bool:
        """Whether all that the suggestion of a number reads is known."""
        if self._settled < min(number - self._lag + 1, number):
            return False
        for index in range(self._whole, len(self._rungs)):
            if self._behind[index] > number:
                break
            if self._rungs[index] < self._open(index, number):
                return False
        return True

    def read(self, number: int) -> tuple[list[Observation], list[dict[str, Scalar]]]:
        """What the suggestion of a number reads, and the configurations of trials whose values are still to come."""
        seen: list[Observation] = []
        unseen: list[dict[str, Scalar]] = []
        for other, trial in enumerate(self._trials[:number]):
            index = self.bracket(other)
            rungs = self._plan.brackets[index].rungs[: self._open(index, number, other)]
            values = [trial.values[rung] for rung in rungs if rung in trial.values]
            seen += values
            if not values:
                unseen.append(trial.hyperparameters)
        return seen, unseen

    def _open(self, index: int, number: int, other: int | None = None) -> int:
        """How many rungs of a bracket a suggestion may read, of one of its trials or of all."""
        rungs = len(self._plan.brackets[index].rungs)
        if self._plan.apart:
            return rungs if other is not None and other <= number - self._lag else 0
        if number >= self._behind[index] + self._lag:
            return min(rungs, 1 + (number - self._behind[index]) // self._lag)
        return int(other is not None and other <= number - self._lag)

    def _settle(self, number: int) -> None:
        first = -1 if self._plan.apart else 0
        while self._settled < len(self._trials) and self._reached(self._settled, first):
            self._settled += 1
        index = self.bracket(number)
        start = self._behind[index - 1] if index else 0
        if len(self._trials) < self._behind[index]:
            return
        while self._rungs[index] < len(self._plan.brackets[index].rungs) and all(
            self._reached(other, self._rungs[index]) for other in range(start, self._behind[index])
        ):
            self._rungs[index] += 1
        while self._whole < len(self._rungs) and self._rungs[self._whole] == len(
            self._plan.brackets[self._whole].rungs
        ):
            self._whole += 1

    def _reached(self, number: int, rung: int) -> bool:
        trial = self._trials[number]
        return trial.over or self._plan.brackets[self.bracket(number)].rungs[rung] in trial.values
