"""What a terminal shows while a job runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hpo.controller import Controller
from hpo.hyperband import Cut
from hpo.search import UNTUNED, TrialRun
from trainers.assignment import Report


class PlainProgress:
    """One line an event: when the best so far improves, and when a trial fails.

    Args:
        say: prints a line.
        metric: the objective.
        objective_type: "Maximize" or "Minimize".
        objective_value: "last" or "best".
    """

    def __init__(self, say: Callable[[str], None], metric: str, objective_type: str, objective_value: str) -> None:
        self._say = say
        self._metric = metric
        self._sign = 1.0 if objective_type == "Maximize" else -1.0
        self._by_best = objective_value == "best"
        self._best = math.nan

    def trial(self, run: TrialRun) -> None:
        """See `Watcher.trial`."""
        value = run.best_value if self._by_best else run.value
        if run.id == UNTUNED:
            return
        if run.failure:
            self._say(f"{run.id} failed: {run.failure}")
        elif math.isfinite(value) and not self._sign * value <= self._sign * self._best:
            self._best = value
            self._say(f"{run.id}: {self._metric} {value:.5f} after {run.resource} units")

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """See `Watcher.reports`."""

    def rung(self, cut: Cut) -> None:
        """See `Watcher.rung`."""

    def progress(self, controller: Controller) -> None:
        """See `Watcher.progress`."""
