"""Completion criteria: a value to reach, trials without improvement, or a search that has converged."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hpo.ranges import ParameterRange, Scalar
from hpo.ranking import Ranking
from hpo.strategies.hyperband import MOST_JOBS, MOST_RESOURCE, Bracket, Plan
from hpo.strategies.median_rule import without_median_rule
from trainers.checking import check_whole, is_number, shown
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar

if TYPE_CHECKING:
    from hpo.suggestions import Convergence

FIRST_FAILURES = 5
"""A job whose first so many trials all fail before their first rung is not going to get better."""

IMPROVEMENT = 0.01
"""By how much of its size the best objective has to become better to count as improved, as SageMaker has it."""


class TuningJobCompletionCriteriaConfig:
    """Criteria that end a job before all its trials have run; the first one met decides. Names as SageMaker has them.

    Args:
        max_number_of_training_jobs_not_improving: the job ends when so many trials in a row, 3 or more, have not
            improved the best objective by 1%. The trials of a Hyperband bracket are judged together, when the last of
            them has ended: those that were cut early never had the time to be better.
        complete_on_convergence: the job ends when the best objective has stood for a while, and a model of all results
            expects little more; see `hpo.suggestions.Convergence`. (SageMaker does not publish its own detector.) Asked
            where the trials in a row are counted, with any strategy.
        target_objective_metric_value: the job ends when a trial reaches this value at a rung, or at its end.

    Trials are judged in the order in which they were suggested, so that the job ends at the same one for any number of
    trials at once. Those behind it, which others trained ahead, do not count: they have no objective value.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        max_number_of_training_jobs_not_improving: int | None = None,
        complete_on_convergence: bool | None = None,
        target_objective_metric_value: float | None = None,
    ) -> None:
        count = plain_scalar(max_number_of_training_jobs_not_improving)
        target = plain_scalar(target_objective_metric_value)
        complete_on_convergence = plain_scalar(complete_on_convergence)
        check_whole("max_number_of_training_jobs_not_improving", count, 3)
        if not isinstance(complete_on_convergence, bool | None):
            raise ConfigurationError(f"complete_on_convergence is {complete_on_convergence!r}; give True or False")
        if target is not None and not is_number(target):
            raise ConfigurationError(f"target_objective_metric_value is {shown(target)}; give a finite number")
        self.max_number_of_training_jobs_not_improving = count
        self.complete_on_convergence = complete_on_convergence
        self.target_objective_metric_value = target

    def to_input_req(self) -> dict[str, Any]:
        """The form that `describe()` gives it in."""
        request: dict[str, Any] = {}
        if self.max_number_of_training_jobs_not_improving is not None:
            request["BestObjectiveNotImproving"] = {
                "MaxNumberOfTrainingJobsNotImproving": self.max_number_of_training_jobs_not_improving
            }
        if self.complete_on_convergence is not None:
            state = "Enabled" if self.complete_on_convergence else "Disabled"
            request["ConvergenceDetected"] = {"CompleteOnConvergence": state}
        if self.target_objective_metric_value is not None:
            request["TargetObjectiveMetricValue"] = self.target_objective_metric_value
        return request

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, for the record."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> TuningJobCompletionCriteriaConfig:
        """As `to_json` recorded it."""
        return cls(**state)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"TuningJobCompletionCriteriaConfig({given})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict that a job has found enough.

    Args:
        reason: which criterion was met, and by what.
        last: number of the trial at which it was; those behind it do not count.
        hopeless: its first trials all failed.
        converged: the search has converged.
    """

    reason: str
    last: int
    hopeless: bool = False
    converged: bool = False


class Completion:
    """Judges a job's trials in the order in which they were suggested, whatever the order in which they come: pure.

    Where many gangs train at once, some trials are ahead of their turn. So a trial is judged when all before it have
    been: in a bracket that cuts, rung by rung, and in one that cuts none, each at its end, where the median rule may
    have put it. The job is then complete at the same trial for any number of gangs.

    Args:
        criteria: what was asked for; None never ends a job.
        plan: the job's brackets, which trials fill in the order of suggestion; None: a bracket that cuts none.
        ranking: which value is better.
        ranges: a range a tuned hyperparameter.
        max_resource: units of a trial that runs to the end.
    """

    def __init__(
        self,
        criteria: TuningJobCompletionCriteriaConfig | None,
        plan: Plan | None,
        ranking: Ranking,
        *,
        ranges: Mapping[str, ParameterRange],
        max_resource: int,
    ) -> None:
        self._patience = criteria.max_number_of_training_jobs_not_improving if criteria else None
        self._target = criteria.target_objective_metric_value if criteria else None
        self._convergence: Convergence | None = None
        if criteria and criteria.complete_on_convergence:
            from hpo.suggestions import Convergence  # imports scikit-learn, which nobody else waits for

            self._convergence = Convergence(ranges, max_resource=max_resource, ranking=ranking)
        brackets = without_median_rule(plan).brackets if plan else [Bracket(rungs=(MOST_RESOURCE,), sizes=(MOST_JOBS,))]
        self._brackets = [(bracket.rungs, bracket.sizes[0]) for bracket in brackets]
        self._trials = MOST_JOBS
        self._first_left = set(range(FIRST_FAILURES))
        """The first trials, but for those that failed."""
        self._trains = plan is not None and plan.trials < FIRST_FAILURES
        """Whether one of them has trained, or they are too few to tell."""
        self._ranking = ranking
        self._reached: dict[int, dict[int, float]] = defaultdict(dict)
        """The objective by trial and rung, and below by trial as it ended: of those that are not done with."""
        self._ended: dict[int, float] = {}
        self._bracket = self._rung = self._first = self._next = 0
        """Where judging stands: a bracket, a rung of it by index, and numbers of its first and of the next trial."""
        self._best = math.nan
        self.not_improving = 0
        """Trials in a row that have not improved the best objective."""

    @property
    def asked(self) -> bool:
        """Whether there is anything to judge."""
        return self._patience is not None or self._target is not None or self._convergence is not None

    @property
    def open(self) -> bool:
        """Whether it may yet turn out that a trial which has ended does not count."""
        return self.asked or not self._trains

    @property
    def judged(self) -> int:
        """The number of the first trial that is not done with."""
        if not self.asked:
            return 0 if self.open else MOST_JOBS
        return self._next if self._is_flat else self._first

    def begun(self, number: int, hyperparameters: Mapping[str, Scalar]) -> None:
        """A trial was begun with these tuned values."""
        if self._convergence is not None:
            self._convergence.begun(number, hyperparameters)

    def reached(self, number: int, resource: int, value: float) -> None:
        """A trial's objective at a rung, perhaps once more."""
        self._trains |= number < FIRST_FAILURES
        if self.asked and number >= self.judged:
            self._reached[number].setdefault(resource, value)
            if self._convergence is not None:
                self._convergence.reached(number, resource, self._reached[number][resource])

    def ended(self, number: int, value: float, *, resource: int = 1, failed: bool = False) -> None:
        """A trial has ended with this objective, after so many units; NaN if it failed."""
        if failed:
            self._first_left.discard(number)
        else:
            self._trains |= number < FIRST_FAILURES
        if self.asked and number >= self.judged:
            self._ended.setdefault(number, value)
            if self._convergence is not None:
                self._convergence.ended(number, resource, self._ended[number])

    def no_more_trials(self, trials: int) -> None:
        """There are so many trials, and no more will come."""
        self._trials = trials
        self._trains |= trials < FIRST_FAILURES

    def may_go_on(self, bracket: int | None, resource: int) -> bool:
        """Whether trials of a bracket may train beyond so many units.

        Not beyond a rung that is not judged yet: if the job is complete there, what they came to there is what counts.
        """
        if self._target is None or bracket is None or bracket < self._bracket:
            return True
        rungs, _ = self._brackets[bracket]
        if len(rungs) == 1 or resource not in rungs:
            return True
        return bracket == self._bracket and rungs.index(resource) < self._rung

    def judge(self) -> Verdict | None:
        """Judges what can be judged by now; returns why the job is complete, once, or None."""
        verdict, last = None, FIRST_FAILURES - 1
        hopeless = not self._first_left and not self._trains
        most = last if hopeless else MOST_JOBS
        while self.asked and verdict is None and self._bracket < len(self._brackets) and self._next <= most:
            rungs, size = self._brackets[self._bracket]
            end = min(self._first + size, self._trials)
            if self._next < end:
                value = self._value(self._next, rungs[self._rung])
                if value is None:
                    break
                verdict = self._one(value)
            elif self._rung + 1 < len(rungs):
                self._rung, self._next = self._rung + 1, self._first
            else:
                verdict = self._pass(end)
        if hopeless and (verdict is None or verdict.last == last):
            return Verdict(reason=f"the first {FIRST_FAILURES} trials all failed", last=last, hopeless=True)
        return verdict

    # ---- within

    @property
    def _is_flat(self) -> bool:
        """Whether no trial of the bracket is cut, so that each is judged by itself."""
        return self._bracket >= len(self._brackets) or len(self._brackets[self._bracket][0]) == 1

    def _value(self, number: int, rung: int) -> float | None:
        """A trial's objective at a rung, or that with which it ended before; None while it has not got there."""
        last = rung == self._brackets[self._bracket][0][-1]  # Where it also ends.
        return self._ended.get(number) if last else self._reached[number].get(rung, self._ended.get(number))

    def _one(self, value: float) -> Verdict | None:
        """Judges the next trial."""
        number, self._next = self._next, self._next + 1
        verdict = self._target_met(number, value)
        if self._is_flat:
            self._forget(number)
            verdict = verdict or self._improvement(value, trials=1, last=number) or self._converged(number)
        return verdict

    def _pass(self, end: int) -> Verdict | None:
        """All trials of the bracket have ended; where it cuts, they are judged together."""
        verdict, trials = None, range(self._first, end)
        if not self._is_flat and trials:
            best = math.nan
            for number in trials:
                best = self._ended[number] if self._ranking.better(self._ended[number], best) else best
                self._forget(number)
            verdict = self._improvement(best, trials=len(trials), last=end - 1) or self._converged(end - 1)
        self._bracket, self._rung, self._first, self._next = self._bracket + 1, 0, end, end
        return verdict

    def _forget(self, number: int) -> None:
        self._reached.pop(number, None)
        self._ended.pop(number, None)

    def _target_met(self, number: int, value: float) -> Verdict | None:
        if self._target is None or not math.isfinite(value) or self._ranking.better(self._target, value):
            return None
        reason = f"target_objective_metric_value {self._target:g} reached with {value:g}"
        return Verdict(reason=reason, last=number)

    def _improvement(self, value: float, *, trials: int, last: int) -> Verdict | None:
        """Whether these trials improved on the best of those judged before; and whether too many have not."""
        better = self._ranking.better(value, self._best)
        if better and not abs(value - self._best) < IMPROVEMENT * abs(self._best):  # The first improves on NaN.
            self.not_improving = 0
        else:
            self.not_improving += trials
        self._best = value if better else self._best
        if self._patience is None or self.not_improving < self._patience:
            return None
        reason = f"the best objective has not improved by 1% over {self.not_improving} trials"
        return Verdict(reason=reason, last=last)

    def _converged(self, last: int) -> Verdict | None:
        """Whether the search has converged with a trial, before which all have ended."""
        if self._convergence is None or (found := self._convergence.judge(last + 1)) is None:
            return None
        reason = (
            f"converged: the best objective has stood since trial {found.since}, of {last + 1}, and the model expects "
            f"at most {found.gain:.3g} more"
        )
        return Verdict(reason=reason, last=last, converged=True)
