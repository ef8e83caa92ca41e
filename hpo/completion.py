"""When a job has found enough: a value that was asked for, or no improvement over many trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hpo.hyperband import Plan
from trainers.errors import ConfigurationError

IMPROVEMENT = 0.01
"""By how much of its size the best objective has to become better to count as improved, as SageMaker has it."""


class TuningJobCompletionCriteriaConfig:
    """What ends a job before all its trials have run; whichever comes first. Names as SageMaker has them.

    Args:
        max_number_of_training_jobs_not_improving: the job ends when so many trials in a row, 3 or more, have not
            improved the best objective by 1%. The trials of a Hyperband bracket are judged together, when the last of
            them has ended: those that were cut early never had the time to be better.
        complete_on_convergence: not there; SageMaker's detector is not published.
        target_objective_metric_value: the job ends when a trial reaches this value at a rung, or at its end.

    Raises:
        ConfigurationError: a value is wrong.
    """

    def __init__(
        self,
        max_number_of_training_jobs_not_improving: int | None = None,
        complete_on_convergence: bool | None = None,
        target_objective_metric_value: float | None = None,
    ) -> None:
        count, target = max_number_of_training_jobs_not_improving, target_objective_metric_value
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 3):
            raise ConfigurationError(
                f"max_number_of_training_jobs_not_improving is {count!r}; give a whole number, 3 or more"
            )
        if complete_on_convergence:
            raise ConfigurationError(
                "complete_on_convergence is not there: SageMaker does not publish how it detects convergence; "
                "give max_number_of_training_jobs_not_improving instead"
            )
        if target is not None and (
            isinstance(target, bool) or not isinstance(target, int | float) or not math.isfinite(target)
        ):
            raise ConfigurationError(f"target_objective_metric_value is {target!r}; give a finite number")
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
            request["ConvergenceDetected"] = {"CompleteOnConvergence": "Disabled"}
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


class Completion:
    """Follows a job's objective and says when the criteria are met: pure, and the same in whatever order trials end.

    Args:
        criteria: what was asked for; None never ends a job.
        plan: the job's brackets.
        maximize: whether larger values are better.
    """

    def __init__(
        self, criteria: TuningJobCompletionCriteriaConfig | None, plan: Plan | None, *, maximize: bool
    ) -> None:
        self._patience = criteria.max_number_of_training_jobs_not_improving if criteria else None
        self._target = criteria.target_objective_metric_value if criteria else None
        self._sizes = [len(b.rungs) > 1 and b.sizes[0] for b in plan.brackets] if plan else []
        self._sign = 1.0 if maximize else -1.0
        self._best = math.nan
        self._ended: Counter[int] = Counter()
        self._bracket_best: dict[int, float] = {}
        self.not_improving = 0
        """Trials in a row that have not improved the best objective."""

    def reported(self, value: float) -> str:
        """A trial's objective at a rung, or at its end. Returns why the job is complete; empty if it is not."""
        if self._target is None or not math.isfinite(value) or self._sign * value < self._sign * self._target:
            return ""
        return f"target_objective_metric_value {self._target:g} reached with {value:g}"

    def ended(self, value: float, bracket: int | None) -> str:
        """A trial has ended with this objective. Returns why the job is complete; empty if it is not."""
        together = self._sizes[bracket] if bracket is not None and bracket < len(self._sizes) else 0
        if bracket is None or not together:
            self._judge(value, trials=1)
        else:
            self._ended[bracket] += 1
            self._bracket_best[bracket] = self._better(self._bracket_best.get(bracket, math.nan), value)
            if self._ended[bracket] == together:
                self._judge(self._bracket_best[bracket], trials=together)
        if self._patience is None or self.not_improving < self._patience:
            return ""
        return f"the best objective has not improved by 1% over {self.not_improving} trials"

    def _judge(self, value: float, trials: int) -> None:
        """Whether these trials improved on the best of those judged before."""
        if not math.isfinite(value):
            self.not_improving += trials
            return
        gain = self._sign * (value - self._best)
        if math.isnan(gain) or gain >= max(IMPROVEMENT * abs(self._best), math.ulp(0.0)):
            self.not_improving = 0
        else:
            self.not_improving += trials
        self._best = self._better(self._best, value)

    def _better(self, one: float, other: float) -> float:
        finite = [value for value in (one, other) if math.isfinite(value)]
        return max(finite, key=lambda value: self._sign * value, default=math.nan)
