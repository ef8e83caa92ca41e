"""Configurations of a search, each of which one trial or several train, as its searcher and its criteria are told."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ray.tune.search import Searcher

from hpo.search.configurations.given import Given
from hpo.search.trial import Search, TrialRun
from hpo.strategies import (
    AsTheyCome,
    Believer,
    Completion,
    GivesUp,
    Learner,
    Means,
    Plan,
    Verdict,
    configurations_of,
    mean,
)


def completion_of(search: Search, plan: Plan | None) -> Completion:
    """The criteria that end a search before all its trials have run.

    Args:
        search: says which there are.
        plan: its brackets, where they are known.
    """
    judges = AsTheyCome if plan is not None and plan.eta else Completion
    return judges(
        search.completion,
        plan and configurations_of(plan),
        search.ranking,
        ranges=search.ranges,
        max_resource=search.max_resource,
    )


class Configurations:
    """Tells searcher and completion criteria of configurations: of the mean of its trials, once all have come so far.

    Trials `repeats * k` and those that follow are the repeats of configuration k. Where each is trained once, they are
    told of every trial as it comes; of forks, which the searcher did not suggest, only the criteria.

    Args:
        search: says how many repeats there are.
        searcher: is told under the id of a configuration's first trial.
        completion: is told by the number of the configuration.
        objective: the value that a trial is compared by.
    """

    def __init__(
        self, search: Search, searcher: Searcher, completion: Completion, objective: Callable[[TrialRun], float]
    ) -> None:
        self._repeats = search.repeats
        self._metric = search.metric
        self._searcher = searcher
        # Decided once: Python looks through a protocol's members at each `isinstance`.
        self._learner = searcher if isinstance(searcher, Learner) else None
        self._believer = searcher if isinstance(searcher, Believer) else None
        self._completion = completion
        self._objective = objective
        self._reports: dict[int, Means] = defaultdict(lambda: Means(self._repeats))
        self._rungs: dict[int, Means] = defaultdict(lambda: Means(self._repeats))
        self._over: dict[int, dict[int, TrialRun]] = defaultdict(dict)
        self._names: dict[int, str] = {}

    @property
    def told_of_known(self) -> bool:
        """Whether the searcher is told which trials there were, so that it need not suggest them again."""
        return self._learner is not None

    def begins(self, number: int) -> bool:
        """Whether a trial of this number is the first of its configuration, so that the searcher suggests it."""
        return number % self._repeats == 0

    def first(self, number: int) -> int:
        """The number of the first trial of the same configuration."""
        return number - number % self._repeats

    def configuration(self, number: int) -> int:
        """The number of a trial's configuration."""
        return number // self._repeats

    def suggested(self, given: Given) -> Given:
        """What gives the next trial its values, with what the searcher's model expects of it, if these are its own."""
        if given.values or self._believer is None:
            return given
        return Given(believed=self._believer.believed())

    def begun(self, run: TrialRun) -> None:
        """A trial has begun."""
        if not self.begins(run.number):
            return
        number = self.configuration(run.number)
        self._names[number] = run.id
        if self._learner is not None:
            self._learner.begun(run.id, run.hyperparameters)
        self._completion.begun(number, run.hyperparameters)

    def reached(self, run: TrialRun, rung: int) -> None:
        """A trial has come to a rung."""
        number, repeat = divmod(run.number, self._repeats)
        value = self._rungs[number].take(repeat, rung, self._objective(run))
        if value is not None:
            self._completion.reached(number, rung, value)

    def reported(self, run: TrialRun, result: dict[str, Any]) -> None:
        """A trial reported, in the form that searchers take."""
        number, repeat = divmod(run.number, self._repeats)
        value = self._reports[number].take(repeat, run.resource, self._objective(run))
        if value is not None and run.suggested:
            self._searcher.on_trial_result(self._names[number], self._as_one(number, result, value))

    def ended(self, run: TrialRun, result: dict[str, Any]) -> None:
        """A trial has ended; one that failed or diverged makes its configuration one that did."""
        number, repeat = divmod(run.number, self._repeats)
        self._over[number][repeat] = run
        if len(self._over[number]) < self._repeats:
            return
        runs = [each for _, each in sorted(self._over.pop(number).items())]
        value = mean(map(self._objective, runs)) if self._repeats > 1 else self._objective(run)
        failed, lost = (any(each.failure for each in runs), any(each.failure or each.diverged for each in runs))
        # Searchers that learn take no value that is not finite.
        stopped = any(each.stopped for each in runs)
        lost, value = (True, math.nan) if stopped and self._repeats > 1 else (lost, value)  # There is no mean.
        told = None if lost else self._as_one(number, result, value)
        if stopped and run.suggested and isinstance(self._searcher, GivesUp):
            self._searcher.gave_up(self._names[number])
        elif run.suggested:
            self._searcher.on_trial_complete(self._names[number], result=told, error=lost)
        if not any(each.cut for each in runs):
            resource = max(each.resource for each in runs)
            self._completion.ended(number, math.nan if failed else value, resource=resource, failed=failed)

    def no_more(self, trials: int) -> None:
        """There are so many trials, and no more will come."""
        self._completion.no_more_trials(self.configuration(trials))

    @property
    def judged(self) -> int:
        """The number of the first trial that the criteria are not done with."""
        return self._completion.judged * self._repeats

    def judge(self) -> Verdict | None:
        """Judges what can be judged by now; returns why the job is complete, once, or None."""
        verdict = self._completion.judge()
        return verdict and replace(verdict, last=(verdict.last + 1) * self._repeats - 1)

    def _as_one(self, number: int, result: dict[str, Any], value: float) -> dict[str, Any]:
        if self._repeats == 1:
            return result
        return {**result, self._metric: value, "trial_id": self._names[number]}
