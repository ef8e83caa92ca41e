"""Completion criteria of a search whose decisions follow from the order of results: judged in that order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hpo.ranking import Ranking
from hpo.strategies.completion_criteria import Completion, TuningJobCompletionCriteriaConfig, Verdict
from hpo.strategies.hyperband import MOST_JOBS, Plan


class AsTheyCome(Completion):
    """Judges each value as a trial comes to a rung with it, and lets every trial count.

    A target is met by the first value that meets it. A trial has not improved the best once it has come to its first
    rung, or was lost on its way, without improving it, and may still do so at a later one.

    That a search has converged is not judged: that goes by trials that have ended, and here they wait at their rungs.

    Args:
        criteria: what was asked for; None never ends a job.
        plan: the job's brackets.
        ranking: which value is better.
        **search: as `Completion` takes it.
    """

    def __init__(
        self, criteria: TuningJobCompletionCriteriaConfig | None, plan: Plan | None, ranking: Ranking, **search: Any
    ) -> None:
        super().__init__(criteria, plan, ranking, **search)
        self._came: set[int] = set()
        self._verdict: Verdict | None = None

    @property
    def asked(self) -> bool:
        """Nothing is judged in the order of suggestion, and no trial waits for that."""
        return False

    def reached(self, number: int, resource: int, value: float) -> None:
        """See `Completion.reached`."""
        super().reached(number, resource, value)
        self._come(number, value)

    def ended(self, number: int, value: float, *, resource: int = 1, failed: bool = False) -> None:
        """See `Completion.ended`."""
        super().ended(number, value, resource=resource, failed=failed)
        if number not in self._came:
            self._come(number, value)

    def judge(self) -> Verdict | None:
        """See `Completion.judge`."""
        return self._verdict or super().judge()

    def _come(self, number: int, value: float) -> None:
        trials = int(number not in self._came)
        self._came.add(number)
        value = value if math.isfinite(value) else math.nan
        met = self._target_met(number, value) or self._improvement(value, trials=trials, last=number)
        if met is not None and self._verdict is None:
            self._verdict = replace(met, last=MOST_JOBS)
