"""Searches with a model for comparison: one reads whatever has come, another's thinking takes simulated time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from hpo.ranges import Scalar
from hpo.search import SimulatedGangs
from hpo.strategies import HyperbandStrategy, ModelSearch, OpenHistory, Prepared, Task
from trainers.gangs import Event


class FreeHyperband(HyperbandStrategy):
    """Hyperband with a model that suggests when it is asked, from all that has come by then."""

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        free = ModelSearch(
            task.ranges,
            task.plan,
            metric=task.metric,
            mode=task.mode,
            seed=task.seed,
            history=OpenHistory(task.plan),
            ahead=False,
        )
        return replace(super().prepare(task), searcher=free)


class WaitingGangs(SimulatedGangs):
    """Simulated gangs whose clock may be put on while nobody looks at it."""

    def wait_until(self, at: float) -> None:
        """Whoever drives the gangs does nothing else until then."""
        self.now = max(self.now, at)

    def events(self, timeout: float) -> Sequence[Event]:
        """See `SimulatedGangs.events`."""
        before = self.now
        events = super().events(timeout)
        self.wait_until(before)
        return events


class TimedSearch(ModelSearch):
    """A search with a model whose suggestions take, on the simulated clock, the processor time that they took."""

    def __init__(self, *arguments: Any, gangs: WaitingGangs, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.took: list[float] = []
        self._gangs = gangs
        self._done = 0.0
        """When the latest suggestion is there."""

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """See `ModelSearch.suggest`."""
        suggested = super().suggest(trial_id)
        if suggested is not None and self._history.begun >= self._first:
            self._gangs.wait_until(self._done)
        return suggested

    def _compute(self, number: int) -> Future[dict[str, Scalar]] | None:
        if self._ahead is not None and self._ahead[0] == number:
            return self._ahead[1]
        if not self._history.ready(number):
            return None
        began = time.thread_time()
        future: Future[dict[str, Scalar]] = Future()
        future.set_result(self.compute(number))
        self.took.append(time.thread_time() - began)
        self._done = max(self._done, self._gangs.now) + self.took[-1]
        self._ahead = number, future
        return future
