"""Replay of a search on recorded curves: the real controller and strategy, gangs and clock simulated."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hpo.cost import Entry
from hpo.ranges import ParameterRange, decode, present
from hpo.ranking import Ranking
from hpo.record import AdditionRow
from hpo.search import Controller, JobState, Search, SimulatedGangs, TrialRun, status_of
from hpo.simulation.curves import Curves
from hpo.strategies import Cut, Plan, Strategy, Task, check_points, prepared
from trainers.errors import ConfigurationError, DivergedError
from trainers.gangs import Assignment, Event, Report

if TYPE_CHECKING:
    from hpo.suggestions import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrial:
    """One simulated trial.

    Args:
        number: its place in the order of suggestion.
        row: the recorded curve that it went along.
        units: that it trained.
        value: its objective at the end; NaN where it diverged.
        status: as the record names it.
    """

    number: int
    row: int
    units: int
    value: float
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a simulated search came to.

    Args:
        seconds: when each unit of any trial was reported, on the simulated clock, rising.
        best: the best value seen by then.
        wall_seconds: from the start to the end.
        worker_seconds: billed, idle time and starts included.
        trials: in the order of suggestion.
        stopped: why the search was stopped; empty if it ran to its end.
    """

    seconds: Sequence[float]
    best: Sequence[float]
    wall_seconds: float
    worker_seconds: float
    trials: Sequence[ReplayedTrial]
    stopped: str

    @property
    def units(self) -> int:
        """Units that all trials trained."""
        return len(self.seconds)

    def best_after(self, units: int) -> float:
        """The best value that the first units showed, in the order of time; NaN where none did."""
        return self.best[min(units, self.units) - 1] if units and self.units else math.nan

    def best_at(self, seconds: float) -> float:
        """The best value seen by a time; NaN where none was."""
        return self.best_after(bisect_right(self.seconds, seconds))


def simulate(
    curves: Curves,
    search: Search,
    strategy: Strategy,
    plan: Plan,
    ranges: Mapping[str, ParameterRange],
    *,
    earlier: Sequence[Observation] = (),
) -> Replayed:
    """Runs a search on recorded curves; `Curves.nearest` says which a trial goes along.

    Gangs start as soon as there is work for them, and are held to the end. Where each configuration is trained several
    times, all its trials go along one curve: a table has one of each.

    Args:
        curves: what trials report, and when.
        search: the job's; its `max_parallel_jobs` is the number of gangs. No run beside the search is simulated.
        strategy: how it searches.
        plan: the brackets that the strategy laid out.
        ranges: of the tuned hyperparameters.
        earlier: results of earlier jobs, for a strategy that learns.

    Raises:
        ConfigurationError: trials would train longer than the curves, or the strategy has no place for the points.
    """
    if plan.max_resource > curves.units:
        raise ConfigurationError(
            f"a trial trains up to {plan.max_resource} units, and the longest curve of {curves.name} has "
            f"{curves.units}; give a max_resource of {curves.units} or less"
        )
    check_points(search.points, ranges, strategy, plan.trials // plan.repeats)
    search = replace(
        search,
        max_jobs=plan.trials,
        max_resource=plan.max_resource,
        ranges=ranges,
        storage_path="/simulated",
        repeats=plan.repeats,
        untuned=False,
        probes=(),
        effects=None,  # Curves are those of trials that trained for themselves.
        patience=math.inf,
    )
    made = prepared(
        strategy,
        Task(
            plan=plan,
            ranges=ranges,
            metric=search.metric,
            mode=search.mode,
            seed=search.seed,
            parallel=search.max_parallel_jobs,
            earlier=earlier,
        ),
    )
    gangs = _CurveGangs(curves, search)
    record = _Reports(gangs, search.metric)

    def tried(suggested: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        asked = decode(ranges, suggested, given)
        values = {**asked, **gangs.recorded(asked), **(given or {})}
        return {name: values[name] for name in present(ranges, values)}

    controller = Controller(
        search,
        searcher=made.searcher,
        scheduler=made.scheduler,
        decode=tried,
        gangs=gangs,
        record=record,
        clock=gangs.clock,
    )
    controller.run()
    seconds, best = _so_far(record.seen, search.ranking)
    return Replayed(
        seconds=seconds,
        best=best,
        wall_seconds=gangs.now,
        worker_seconds=controller.ledger.total,
        trials=[
            ReplayedTrial(
                number=run.number,
                row=gangs.row(run.id, run.hyperparameters),
                units=run.resource,
                value=math.nan if run.diverged else controller.objective(run),
                status=status_of(run),
            )
            for run in controller.runs.values()
        ],
        stopped=controller.stopped,
    )


class _CurveGangs(SimulatedGangs):
    """Gangs whose trials go along recorded curves; the clock stops at the search's time limit, to be looked at."""

    def __init__(self, curves: Curves, search: Search) -> None:
        super().__init__(
            self._objective, metric=search.metric, start_seconds=curves.start_seconds, unit_seconds=self._mean_seconds
        )
        self.curves = curves
        self.began: dict[str, float] = {}
        """When each trial's latest assignment began."""
        self._rows: dict[str, int] = {}
        self._once = curves.gives_each_once(search.max_jobs // search.repeats)
        self._repeats = search.repeats
        self._tried: dict[int, int] = {}
        """The curve of each configuration."""
        self._limit = search.limits.max_seconds

    def recorded(self, suggested: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration that is tried in place of a suggested one, which a searcher that learns is told of."""
        return self.curves.configurations[self._nearest(suggested)]

    def row(self, trial_id: str, hyperparameters: Mapping[str, Any]) -> int:
        """The curve that a trial goes along; it is asked for as soon as a trial is suggested."""
        if trial_id not in self._rows:
            self._rows[trial_id] = self._nearest(hyperparameters)
        return self._rows[trial_id]

    def begun(self, run: TrialRun) -> None:
        """Gives a new trial its curve: in the order of suggestion, whichever gang is free first."""
        number = run.number // self._repeats
        if number in self._tried:
            self._rows.setdefault(run.id, self._tried[number])
        self._tried[number] = self.row(run.id, run.hyperparameters)

    def _nearest(self, hyperparameters: Mapping[str, Any]) -> int:
        return self.curves.nearest(hyperparameters, self._rows.values() if self._once else ())

    def assign(self, gang: str, assignment: Assignment) -> None:
        """See `SimulatedGangs.assign`."""
        self.began[assignment.trial_id] = self.now
        super().assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        """See `SimulatedGangs.events`."""
        if self._events and self.now < self._limit < self._events[0][0]:
            self.now = self._limit
            return []
        return super().events(timeout)

    def _objective(self, assignment: Assignment, step: int) -> float:
        row = self.row(assignment.trial_id, assignment.hyperparameters)
        if step >= self.curves.diverged_at[row]:
            raise DivergedError(f"the recorded curve diverged in unit {step}")
        return float(self.curves.values[row, step - 1])

    def _mean_seconds(self, assignment: Assignment) -> float:
        """Of a unit of an assignment, which ends in the unit that diverges."""
        row = self.row(assignment.trial_id, assignment.hyperparameters)
        seconds, end = self.curves.seconds[row], min(assignment.stop, int(self.curves.diverged_at[row]))
        return float(seconds[end] - seconds[assignment.start]) / (assignment.stop - assignment.start)


@dataclass
class _Reports:
    """A record that keeps when which value was seen."""

    gangs: _CurveGangs
    metric: str
    seen: list[tuple[float, float]] = field(default_factory=list)
    stop_requested: bool = False
    additions: Sequence[AdditionRow] = ()
    stops: Mapping[str, str] = field(default_factory=dict)

    def trial(self, run: TrialRun) -> None:
        """See `_CurveGangs.begun`."""
        self.gangs.begun(run)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Keeps each value and the time of its unit, which is before the end of the assignment."""
        if not reports:
            return
        seconds = self.gangs.curves.seconds[self.gangs.row(run.id, run.hyperparameters)]
        began = self.gangs.began[run.id] - seconds[reports[0].step - 1]
        self.seen += [(float(began + seconds[report.step]), report.metrics[self.metric]) for report in reports]

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Not kept."""

    def rung(self, cut: Cut) -> None:
        """Not kept."""

    def leave_out(self, last: int) -> None:
        """Not kept."""

    def progress(self, state: JobState) -> None:
        """Not kept."""


def _so_far(seen: Sequence[tuple[float, float]], ranking: Ranking) -> tuple[list[float], list[float]]:
    """Times, rising, and the best value until each."""
    seconds, best = [], []
    value = math.nan
    for at, reported in sorted(seen):
        value = reported if ranking.better(reported, value) else value
        seconds.append(at)
        best.append(value)
    return seconds, best
