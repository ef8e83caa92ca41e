"""Hyperband's plan and decisions: brackets, rungs and promotions; pure.

Source: Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar, "Hyperband: A Novel Bandit-Based Approach to Hyperparameter
Optimization", JMLR 18 (2018), algorithm 1. Trials resume where they stopped, so a rung costs what it adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from hpo.ranking import Rank, Ranking
from trainers.errors import ConfigurationError

# A plan is laid out whole, before a job starts: far beyond what anyone trains, it would fill the memory.
MOST_JOBS = 100_000
"""Trials in a job; a plan names a bracket for each few of them."""
MOST_RESOURCE = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """One bracket of successive halving.

    Args:
        rungs: resource units at which its trials are compared, rising; the last is `max_resource`.
        sizes: how many trials train to each rung, falling.
    """

    rungs: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def resource(self) -> int:
        """The units it uses if no trial fails; it never uses more."""
        steps = zip((0, *self.rungs), self.rungs, self.sizes, strict=False)
        return sum((rung - below) * size for below, rung, size in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every bracket of a tuning job, known before it starts, in the order in which trials fill them.

    Args:
        brackets: them.
        max_resource: units of a trial that runs to the end.
        apart: each trial is stopped or not by itself, as `hpo.strategies.median_rule` has it, and not with the others
            of its bracket; sizes are then the most that may train so far.
        eta: as `apart`, but as `hpo.strategies.asha` has it: one in so many goes on, as results come; else None.
        repeats: trials of each configuration, which follow each other; see `hpo.strategies.repeats`.
    """

    brackets: tuple[Bracket, ...]
    max_resource: int
    apart: bool = False
    eta: int | None = None
    repeats: int = 1

    @property
    def trials(self) -> int:
        """How many trials it is for."""
        return sum(bracket.sizes[0] for bracket in self.brackets)

    @property
    def resource(self) -> int:
        """The most units that the job can use."""
        return sum(bracket.resource for bracket in self.brackets)

    @property
    def assignments(self) -> int:
        """The most pieces in which the job can train them, one a trial and rung."""
        return sum(sum(bracket.sizes) for bracket in self.brackets)

    @property
    def full_resource(self) -> int:
        """The units that the same trials would use, each run to the end."""
        return self.trials * self.max_resource

    def to_json(self) -> dict[str, object]:
        """For the record."""
        return {
            "max_resource": self.max_resource,
            "brackets": [{"rungs": list(b.rungs), "sizes": list(b.sizes)} for b in self.brackets],
            **{each.name: value for each in fields(self)[2:] if (value := getattr(self, each.name)) != each.default},
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Plan:
        """As `to_json` recorded it."""
        brackets = [Bracket(rungs=tuple(b["rungs"]), sizes=tuple(b["sizes"])) for b in state["brackets"]]
        more = {key: state[key] for key in (each.name for each in fields(cls)[2:]) if key in state}
        return cls(brackets=tuple(brackets), max_resource=state["max_resource"], **more)


def lay_out(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int = 3) -> Plan:
    """Brackets for exactly `max_jobs` trials, most aggressive first.

    Whole rounds of the paper's brackets come first; what is left is scaled: first the most aggressive bracket shrinks,
    down to the size of the next, then all in proportion. Cutting the largest bracket first keeps enough trials in the
    others, which forgive a slow start; in a simulation on 400 recorded learning curves, 30 trials so laid out lost less
    than strict proportions did (0.0019 of AUC against 0.0028) for 37% of the resource against 29%.

    Args:
        max_jobs: trials in all.
        min_resource: units before the first rung at which a trial can be stopped.
        max_resource: units of a trial that runs to the end.
        reduction_factor: eta; one in so many goes on at each rung.

    Raises:
        ConfigurationError: a value is out of range.
    """
    halvings = halvings_of(max_jobs, min_resource, max_resource, reduction_factor)
    depths = range(halvings, -1, -1)
    whole = [-(-(halvings + 1) * reduction_factor**s // (s + 1)) for s in depths]
    brackets = [
        _bracket(trials, depth, max_resource, reduction_factor)
        for trials, depth in _shared_out(max_jobs, whole, depths)
    ]
    return Plan(brackets=tuple(brackets), max_resource=max_resource)


def lay_out_cutting(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int = 3) -> Plan:
    """Brackets for exactly `max_jobs` trials, each of which stops some of them, most aggressive first.

    The paper's bracket that trains every trial to the end is left out, and rungs are the nearest whole units to the
    fractions of `max_resource`. A model needs no bracket that forgives a slow start as much as it needs many trials: on
    nine tasks of recorded curves (docs/model.md) it lost less so at every budget. Rungs let through as many trials as
    in the paper, rounded down. What is left of a job behind whole rounds is scaled as in `lay_out`.

    Args:
        max_jobs: trials in all.
        min_resource: units before the first rung at which a trial can be stopped.
        max_resource: units of a trial that runs to the end.
        reduction_factor: eta; one in so many goes on at each rung.

    Raises:
        ConfigurationError: a value is out of range.
    """
    halvings = halvings_of(max_jobs, min_resource, max_resource, reduction_factor)
    if not halvings:
        return run_all(max_jobs, max_resource)
    depths = range(halvings, 0, -1)
    whole = [-(-(halvings + 1) * reduction_factor**s // (s + 1)) for s in depths]
    brackets = []
    for trials, depth in _shared_out(max_jobs, whole, depths):
        sizes = [max(1, trials // reduction_factor**s) for s in range(depth + 1)]
        rungs = [nearest(max_resource, reduction_factor**s) for s in range(depth, -1, -1)]
        brackets.append(Bracket(rungs=tuple(rungs), sizes=tuple(sizes)))
    return Plan(brackets=tuple(brackets), max_resource=max_resource)


def run_all(max_jobs: int, max_resource: int) -> Plan:
    """The plan of a search without early stopping: one bracket, nothing cut."""
    check_within("max_jobs", max_jobs, 1, MOST_JOBS)
    check_within("max_resource", max_resource, 1, MOST_RESOURCE)
    return Plan(brackets=(Bracket(rungs=(max_resource,), sizes=(max_jobs,)),), max_resource=max_resource)


def halvings_of(max_jobs: int, min_resource: int, max_resource: int, reduction_factor: int) -> int:
    """How many rungs there are at most before the last one."""
    check_within("max_jobs", max_jobs, 1, MOST_JOBS)
    check_within("min_resource", min_resource, 1, MOST_RESOURCE)
    check_within("max_resource", max_resource, 1, MOST_RESOURCE)
    check_within("reduction_factor", reduction_factor, 2, MOST_RESOURCE)
    if max_resource < min_resource:
        raise ConfigurationError(
            f"max_resource is {max_resource}, less than min_resource, {min_resource}; give max_resource >= min_resource"
        )
    halvings = 0
    while min_resource * reduction_factor ** (halvings + 1) <= max_resource:
        halvings += 1
    return halvings


def _shared_out(max_jobs: int, whole: list[int], depths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Trials and halvings of each bracket: whole rounds, and what is left, scaled."""
    rounds, left = divmod(max_jobs, sum(whole))
    counts = whole * rounds + (_scale(whole, left) if left else [])
    return ((count, depth) for count, depth in zip(counts, [*depths] * (rounds + 1), strict=False) if count)


def nearest(dividend: int, divisor: int) -> int:
    """The whole number nearest to a fraction, of two the larger; whole numbers alone, so that nothing is rounded."""
    return (2 * dividend + divisor) // (2 * divisor)


def check_within(name: str, value: int, least: int, most: int) -> None:
    """Refuses a value that is out of range."""
    if value < least:
        raise ConfigurationError(f"{name} is {value}; give at least {least}")
    if value > most:
        raise ConfigurationError(f"{name} is {value}; give at most {most}")


def _bracket(trials: int, halvings: int, max_resource: int, eta: int) -> Bracket:
    sizes = [trials]
    for _ in range(halvings):
        sizes.append(math.ceil(sizes[-1] / eta))
    return Bracket(rungs=tuple(max_resource // eta**s for s in range(halvings, -1, -1)), sizes=tuple(sizes))


def _scale(whole: list[int], trials: int) -> list[int]:
    """Divides fewer trials than a whole round among its brackets, most aggressive first."""
    if len(whole) == 1:
        return [trials]
    weights = [max(whole[1], min(whole[0], trials - sum(whole[1:]))), *whole[1:]]
    total = sum(weights)
    shares = [trials * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(trials * weights[i] % total), i))
    for i in by_remainder[: trials - sum(shares)]:
        shares[i] += 1
    # A bracket of one has nothing to cut: its trial joins the more aggressive neighbour; the first's joins the next.
    for i in range(len(shares) - 2, 0, -1):
        if shares[i] == 1:
            shares[i - 1], shares[i] = shares[i - 1] + 1, 0
    if shares[0] == 1 and len(shares) > 2:
        shares[0], shares[1] = 0, shares[1] + 1
    elif shares[0] == 1:
        shares[0], shares[1] = 1 + shares[1], 0
    return shares


class State(Enum):
    """Where a trial stands."""

    TRAINING = "training"
    """Has units to train before its next rung, running or not."""
    WAITING = "waiting"
    """Has reached a rung that others have yet to reach."""
    STOPPED = "stopped"
    """Was cut at a rung."""
    FINISHED = "finished"
    """Has reached `max_resource`, or ended by itself."""
    FAILED = "failed"


@dataclass(slots=True, kw_only=True)
class _Entry:
    number: int
    bracket: int
    rung: int = 0
    state: State = State.TRAINING
    value: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A rung that was decided.

    Args:
        bracket: index of its bracket in the plan.
        resource: units at which its trials were compared.
        went_on: the trials that train to the next rung, best first.
        stopped: those that were cut, best first.
    """

    bracket: int
    resource: int
    went_on: tuple[str, ...]
    stopped: tuple[str, ...]


class Hyperband:
    """Decides which trials go on.

    It knows neither time nor workers: the same values give the same decisions, whatever the order in which they come.

    A rung is cut when its bracket is full and all of it have reached the rung, failed, or ended. The best go on, as
    many as the plan has places for; ties go to the trial that was added first. A value that is not finite ranks last
    and never goes on.

    Args:
        plan: the brackets.
        maximize: whether larger values are better.
    """

    def __init__(self, plan: Plan, *, maximize: bool) -> None:
        self.plan = plan
        self._ranking = Ranking(maximize=maximize)
        self._entries: dict[str, _Entry] = {}
        self._added = [0] * len(plan.brackets)
        # By bracket, so that no report looks at the others of it. Those that train all train to the same rung, and are
        # in the order in which they were added.
        self._training: list[dict[str, None]] = [{} for _ in plan.brackets]
        self._waiting: list[dict[str, None]] = [{} for _ in plan.brackets]
        self._filling = 0
        self._active: set[int] = set()
        """Brackets in which a trial has units to train."""
        self._closed = False
        self.cuts: list[Cut] = []
        """Every rung decided so far, in the order of decision."""

    def add(self, trial: str) -> int:
        """Puts a new trial into the first bracket with room; returns the bracket's index.

        Raises:
            ConfigurationError: the plan holds no more trials.
        """
        while self._filling < len(self.plan.brackets):
            index = self._filling
            if self._added[index] < self.plan.brackets[index].sizes[0]:
                self._entries[trial] = _Entry(number=len(self._entries), bracket=index)
                self._added[index] += 1
                self._training[index][trial] = None
                self._active.add(index)
                return index
            self._filling += 1
        raise ConfigurationError(f"the plan is for {self.plan.trials} trials and holds as many; give a larger max_jobs")

    def close(self) -> set[str]:
        """No more trials will come: brackets that are not full count as full. Returns the trials this decides."""
        self._closed = True
        return set().union(*(self._cut(index) for index in range(len(self.plan.brackets))))

    def state(self, trial: str) -> State:
        """Where it stands."""
        return self._entries[trial].state

    def bracket(self, trial: str) -> int:
        """The index of its bracket."""
        return self._entries[trial].bracket

    def milestone(self, trial: str) -> int:
        """The units at which it next waits, or ends."""
        entry = self._entries[trial]
        return self.plan.brackets[entry.bracket].rungs[entry.rung]

    def next_rung(self, trial: str, resource: int) -> int:
        """The first rung of its bracket behind `resource` units."""
        rungs = self.plan.brackets[self._entries[trial].bracket].rungs
        return next((rung for rung in rungs if rung > resource), self.plan.max_resource)

    def runnable(self) -> Iterable[str]:
        """Trials that have units to train, running or not, first bracket first, in the order of addition in it.

        Take what is needed of it before the next decision: it is not a copy.
        """
        for index in sorted(self._active):
            yield from self._training[index]

    def report(self, trial: str, resource: int, value: float) -> set[str]:
        """A trial's value after so many units, absolute. Returns the trials this decides, perhaps itself."""
        entry = self._entries[trial]
        milestone = self.milestone(trial)
        if entry.state is not State.TRAINING or resource < milestone:
            return set()
        if milestone == self.plan.max_resource:
            return self._leave(trial, State.FINISHED) | {trial}
        entry.value, entry.state = value, State.WAITING
        del self._training[entry.bracket][trial]
        self._waiting[entry.bracket][trial] = None
        return self._cut(entry.bracket)

    def fail(self, trial: str) -> set[str]:
        """A trial failed. Returns the trials this decides."""
        return self._leave(trial, State.FAILED)

    def finish(self, trial: str) -> set[str]:
        """A trial ended by itself, or was stopped from outside. Returns the trials this decides."""
        return self._leave(trial, State.FINISHED)

    def _leave(self, trial: str, state: State) -> set[str]:
        entry = self._entries[trial]
        if entry.state not in (State.TRAINING, State.WAITING):
            return set()
        (self._training if entry.state is State.TRAINING else self._waiting)[entry.bracket].pop(trial)
        entry.state = state
        return self._cut(entry.bracket)

    def _cut(self, index: int) -> set[str]:
        bracket = self.plan.brackets[index]
        if self._training[index]:
            return set()
        self._active.discard(index)
        if not self._waiting[index] or (not self._closed and self._added[index] < bracket.sizes[0]):
            return set()
        waiting, self._waiting[index] = self._waiting[index], {}
        rung = self._entries[next(iter(waiting))].rung
        ranked = sorted(waiting, key=self._rank)
        finite = [trial for trial in ranked if math.isfinite(self._entries[trial].value)]
        went_on = finite[: bracket.sizes[rung + 1]]
        stopped = ranked[len(went_on) :]
        for trial in stopped:
            self._entries[trial].state = State.STOPPED
        for trial in sorted(went_on, key=lambda trial: self._entries[trial].number):
            self._entries[trial].state, self._entries[trial].rung = State.TRAINING, rung + 1
            self._training[index][trial] = None
            self._active.add(index)
        self.cuts.append(
            Cut(bracket=index, resource=bracket.rungs[rung], went_on=tuple(went_on), stopped=tuple(stopped))
        )
        return set(waiting)

    def _rank(self, trial: str) -> Rank:
        entry = self._entries[trial]
        return self._ranking.rank(entry.value, 0, entry.number)
