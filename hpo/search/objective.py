"""The objective of a search: comparison of trials, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hpo.ranking import best_of, mean_of, ranks
from hpo.search.trial import Search, TrialRun, standing_of
from hpo.strategies import RESOURCE
from trainers.gangs import Report, Segment

_STANDING = ("resource", "metrics", "value", "best_value", "best_resource", "details")


class Comparison:
    """Follows the objective in trials' reports.

    Args:
        search: says which metric it is, which end of it is better, and whether the last value counts or the best.
    """

    def __init__(self, search: Search) -> None:
        self._metric = search.metric
        self._ranking = search.ranking
        self._repeats = search.repeats

    def objective(self, run: TrialRun) -> float:
        """The value that trials are compared by: the last, or the best one where the search says so."""
        return self._ranking.counts(run.value, run.best_value)

    def best(self, runs: Iterable[TrialRun]) -> TrialRun | None:
        """The one with the best objective; ties to the less resource, then to the first. None if none is finite.

        Where configurations are trained several times, it is the best of those of the configuration with the best mean.
        """
        tuned = [run for run in runs if run.tuned]
        found = ranks(self._ranking, (standing_of(self._ranking, run) for run in tuned), self._repeats)
        return best_of(tuned, lambda run: found[run.number])

    def values_beside(self, run: TrialRun, runs: Iterable[TrialRun]) -> list[float]:
        """The objectives of all trials of a trial's configuration, its own among them."""
        number = run.number // self._repeats
        return [self.objective(each) for each in runs if each.tuned and each.number // self._repeats == number]

    def score(self, run: TrialRun, runs: Iterable[TrialRun]) -> float:
        """The value that configurations are compared by: a trial's own, or the mean over its configuration's trials."""
        return mean_of(self.values_beside(run, runs))

    def take(self, run: TrialRun, report: Report) -> None:
        """A trial trained another unit; one that an ancestor had trained has no value of the trial's own."""
        run.resource = report.step
        if report.step <= run.begins_at:
            return
        run.value = report.metrics.get(self._metric, math.nan)
        improved = self._ranking.better(run.value, run.best_value)
        if improved:
            run.best_value, run.best_resource = run.value, report.step
        if improved or not self._ranking.by_best:
            run.metrics = report.metrics

    def standing(self, run: TrialRun) -> dict[str, Any]:
        """Where a trial stands, which `run` can be put back to by its fields."""
        return {name: getattr(run, name) for name in _STANDING}

    def is_whole(self, segment: Segment) -> bool:
        """Whether nothing is wrong with a segment's numbers."""
        return not self.missing(segment.reports) and not self.divergence(segment.reports)

    def missing(self, reports: Sequence[Report]) -> str:
        """The message about reports without the objective; empty if all have it, or there is none."""
        for report in reports:
            if self._metric and self._metric not in report.metrics:
                names = ", ".join(sorted(report.metrics)) or "nothing"
                return f"it reported no {self._metric!r}, which trials are compared by, but {names}"
        return ""

    def divergence(self, reports: Sequence[Report]) -> str:
        """The message about an objective that is not finite; empty if all are, or there is none."""
        for report in reports if self._metric else ():
            if not math.isfinite(value := report.metrics[self._metric]):
                return f"{self._metric} is {value} at unit {report.step}"
        return ""

    def result(self, run: TrialRun, step: int, value: float, metrics: dict[str, float]) -> dict[str, Any]:
        """A report in the form that Ray Tune's searchers and schedulers take."""
        return {
            **metrics,
            self._metric: value,
            RESOURCE: step,
            "training_iteration": step,
            "trial_id": run.id,
            "config": dict(run.trial.config),
        }
