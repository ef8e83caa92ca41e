"""Repeats: configurations that several trials train, each with a seed of its own, compared by their mean; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hpo.ranking import mean_of
from hpo.strategies.hyperband import Bracket, Cut, Plan, State


def repeated(plan: Plan, repeats: int) -> Plan:
    """The plan of a job each of whose configurations is trained so many times, out of one that trains each once."""
    brackets = tuple(replace(each, sizes=tuple(size * repeats for size in each.sizes)) for each in plan.brackets)
    return replace(plan, brackets=brackets, repeats=repeats)


def configurations_of(plan: Plan) -> Plan:
    """The plan from which `repeated` made one: its sizes count configurations."""
    brackets = [Bracket(rungs=each.rungs, sizes=tuple(s // plan.repeats for s in each.sizes)) for each in plan.brackets]
    return replace(plan, brackets=tuple(brackets), repeats=1)


@dataclass(slots=True)
class Means:
    """Means over the repeats of a configuration, by unit; added up in the order of repeats, whoever comes first.

    Args:
        repeats: how many there are.
    """

    repeats: int
    _values: dict[int, dict[int, float]] = field(default_factory=dict)
    _told: int = 0

    def take(self, repeat: int, unit: int, value: float) -> float | None:
        """Takes a value; returns the mean once all repeats have one at this unit, which units do in rising order."""
        if self.repeats == 1:
            return value
        if unit <= self._told:  # One that trains its rungs again.
            return None
        values = self._values.setdefault(unit, {})
        values[repeat] = value
        if len(values) < self.repeats:
            return None
        self._told = unit
        del self._values[unit]
        return mean(values[each] for each in range(self.repeats))


def mean(values: Iterable[float]) -> float:
    """The mean of values, not finite where one of them is not."""
    known = list(values)
    return mean_of(known) if all(map(math.isfinite, known)) else math.nan


@dataclass(slots=True)
class _Configuration:
    """The trials of a configuration, and where each stands."""

    states: dict[str, State] = field(default_factory=dict)
    means: Means = field(default_factory=lambda: Means(1))


class Core(Protocol):
    """Pure decisions over a plan; each method that is told something returns the trials that this decides."""

    @property
    def cuts(self) -> Sequence[Cut]:
        """Every rung decided so far, in the order of decision."""

    def add(self, trial: str) -> int:
        """Takes a new trial; returns the index of its bracket."""

    def close(self) -> set[str]:
        """No more trials will come."""

    def state(self, trial: str) -> State:
        """Where a trial stands."""

    def bracket(self, trial: str) -> int:
        """The index of its bracket."""

    def milestone(self, trial: str) -> int:
        """The units at which it next waits, or ends."""

    def next_rung(self, trial: str, resource: int) -> int:
        """The first rung of it behind `resource` units."""

    def runnable(self) -> Iterable[str]:
        """Trials that have units to train, running or not, in the order in which they are to get gangs."""

    def report(self, trial: str, resource: int, value: float) -> set[str]:
        """A trial's value after so many units, absolute."""

    def fail(self, trial: str) -> set[str]:
        """A trial failed."""

    def finish(self, trial: str) -> set[str]:
        """A trial ended by itself, or was stopped from outside."""


class Repeated:
    """Decides which configurations go on, by the means of their trials; with the interface of `Hyperband`.

    Trials that come one after the other are the repeats of one configuration. It is decided of when all of them have
    come to a rung, failed or ended. Where one failed, the others train to the rung before them, so that which trial
    stops where does not depend on which was faster; then the configuration leaves its bracket as one that failed.

    Args:
        core: decides of configurations, each by the name of its first trial.
        plan: the plan of trials.
    """

    def __init__(self, core: Core, plan: Plan) -> None:
        self._core = core
        self._repeats, self._max_resource = plan.repeats, plan.max_resource
        self._first: dict[str, str] = {}
        """The name of each trial's configuration."""
        self._configurations: dict[str, _Configuration] = {}
        self._cuts: list[Cut] = []

    @property
    def cuts(self) -> Sequence[Cut]:
        """Every rung decided so far, in the order of decision: of all trials."""
        for cut in self._core.cuts[len(self._cuts) :]:
            went_on, stopped = (self._trials(names) for names in (cut.went_on, cut.stopped))
            self._cuts.append(replace(cut, went_on=went_on, stopped=stopped))
        return self._cuts

    def add(self, trial: str) -> int:
        """Takes a new trial; returns the index of its bracket.

        Raises:
            ConfigurationError: the plan holds no more trials.
        """
        last = next(reversed(self._configurations), None)
        if last is None or len(self._configurations[last].states) == self._repeats:
            self._core.add(trial)
            last = trial
            self._configurations[trial] = _Configuration(means=Means(self._repeats))
        self._first[trial] = last
        self._configurations[last].states[trial] = State.TRAINING
        return self.bracket(trial)

    def close(self) -> set[str]:
        """No more trials will come. Returns the trials this decides."""
        return self._decided(self._core.close())

    def state(self, trial: str) -> State:
        """Where it stands."""
        return self._of(trial).states[trial]

    def bracket(self, trial: str) -> int:
        """The index of its bracket."""
        return self._core.bracket(self._first[trial])

    def milestone(self, trial: str) -> int:
        """The units at which it next waits, or ends."""
        return self._core.milestone(self._first[trial])

    def next_rung(self, trial: str, resource: int) -> int:
        """The first rung of its bracket behind `resource` units."""
        return self._core.next_rung(self._first[trial], resource)

    def runnable(self) -> Iterable[str]:
        """Trials that have units to train, running or not, in the order of their configurations."""
        for name in self._core.runnable():
            states = self._configurations[name].states
            yield from (trial for trial, state in states.items() if state is State.TRAINING)

    def report(self, trial: str, resource: int, value: float) -> set[str]:
        """A trial's value after so many units, absolute. Returns the trials this decides, perhaps itself."""
        configuration, name = self._of(trial), self._first[trial]
        states, milestone = configuration.states, self.milestone(trial)
        if states[trial] is not State.TRAINING:
            return set()
        if resource >= milestone:
            states[trial] = State.FINISHED if milestone == self._max_resource else State.WAITING
        mean = configuration.means.take(list(states).index(trial), resource, value)
        # One that is lost may have been here before, and was stopped as it waited.
        lost = State.FAILED in states.values()
        decided = set() if mean is None or lost else self._core.report(name, resource, mean)
        return self._decided(decided) | self._left(name)

    def fail(self, trial: str) -> set[str]:
        """A trial failed. Returns the trials this decides."""
        return self._leave(trial, State.FAILED)

    def finish(self, trial: str) -> set[str]:
        """A trial ended by itself, or was stopped from outside. Returns the trials this decides."""
        return self._leave(trial, State.FINISHED)

    # ---- within

    def _of(self, trial: str) -> _Configuration:
        return self._configurations[self._first[trial]]

    def _trials(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(trial for name in names for trial in self._configurations[name].states)

    def _leave(self, trial: str, state: State) -> set[str]:
        states = self._of(trial).states
        if states[trial] not in (State.TRAINING, State.WAITING):
            return set()
        states[trial] = state
        return self._left(self._first[trial])

    def _left(self, name: str) -> set[str]:
        """Takes a configuration out of its bracket, once none of its trials trains, if one failed or all have ended."""
        states = self._configurations[name].states
        here = set(states.values())
        if len(states) < self._repeats or State.TRAINING in here:
            return set()
        if State.FAILED in here:
            return self._decided({name, *self._core.fail(name)})
        if here == {State.FINISHED}:
            return self._decided(self._core.finish(name))
        return set()

    def _decided(self, names: Iterable[str]) -> set[str]:
        """The trials of configurations that were decided of; those that waited go on, or stop."""
        names = list(names)
        for name in names:
            states, goes_on = self._configurations[name].states, self._core.state(name) is State.TRAINING
            for trial, state in states.items():
                if state is State.WAITING:
                    states[trial] = State.TRAINING if goes_on else State.STOPPED
        return set(self._trials(names))
