"""Forecast of a job before it starts: worker-seconds, wall time and money, at most and expected; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hpo.cost import Limits, ManyWorkers, Tariff, busy_gangs, job_on_gangs
from hpo.search import Search
from hpo.strategies import Plan
from hpo.text import estimated, money

PROBE = "probe"
"""The source of a forecast that comes from a job's own probe; others are "job NAME"."""

ONE_UNIT = "Measured was one unit alone, the first, which may be slower than others."
"""What is said of a pace that is cold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Worker-seconds, wall time and money of a job.

    Args:
        worker_seconds: that it is billed.
        wall_seconds: from its start to its end.
        cost: of the worker-seconds; None without prices.
    """

    worker_seconds: float
    wall_seconds: float
    cost: float | None

    def billed(self, currency: str) -> str:
        """The worker-seconds and their cost, for people."""
        cost = "" if self.cost is None else f", {money(self.cost, currency)}"
        return f"{self.worker_seconds:,.0f} worker-seconds{cost}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of a job.

    Args:
        source: where its pace comes from: `PROBE`, or "job NAME".
        at_most: if all of its plan is trained, on all the gangs that there may be.
        expected: if as much of its plan is trained as of an earlier job's, on as many gangs as are worth their start.
        currency: a label.
        ends_early: which limit ends it before that, in a sentence; empty if none does.
        doubts: why it may be far off, in sentences; empty where nothing is known that speaks against it.
    """

    source: str
    at_most: Amount
    expected: Amount
    currency: str = ""
    ends_early: str = ""
    doubts: str = ""

    @property
    def text(self) -> str:
        """For people, before the job."""
        return (
            f"Forecast from {'the ' if self.source == PROBE else ''}{self.source}: "
            f"about {estimated(self.expected.wall_seconds)} and {self.expected.billed(self.currency)}; "
            f"at most {estimated(self.at_most.wall_seconds)} and {self.at_most.billed(self.currency)}."
            + "".join(f" {part}" for part in (self.ends_early, self.doubts) if part)
        )

    @property
    def bill(self) -> str:
        """The same without wall time and doubts, behind a probe's verdict, which has them."""
        expected, at_most = self.expected.billed(self.currency), self.at_most.billed(self.currency)
        ends = f" {self.ends_early}" if self.ends_early else ""
        return f"It is forecast to be billed about {expected}, and at most {at_most}.{ends}"

    def doubted(self, *doubts: str) -> Forecast:
        """The same with more that speaks against it; empty sentences are none."""
        return replace(self, doubts=" ".join(doubt for doubt in (self.doubts, *doubts) if doubt))

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


def forecast_error(expected: Mapping[str, float], *, worker_seconds: float, wall_seconds: float) -> dict[str, float]:
    """By how much of what was expected a job took more; less than 0 where it took less."""
    measured = {"worker_seconds": worker_seconds, "wall_seconds": wall_seconds}
    return {name: value / expected[name] - 1.0 for name, value in measured.items() if expected[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Outlook on a job before it starts.

    Args:
        planned_units: that its trials train at most.
        planned_assignments: in which they do at most.
        other_units: of its probe and its un-tuned run.
        other_assignments: of these.
        gangs: that there may be at once.
        limits: what the job may take.
    """

    planned_units: int
    planned_assignments: int
    other_units: int
    other_assignments: int
    gangs: int
    limits: Limits

    @classmethod
    def of(cls, search: Search, plan: Plan, *, in_hand: bool) -> Outlook:
        """The outlook on a search.

        Args:
            search: what is to be carried out, its probes included.
            plan: its brackets.
            in_hand: whether there is one gang, in this process.
        """
        return cls(
            planned_units=plan.resource,
            planned_assignments=plan.assignments,
            other_units=sum(search.probes) + (plan.max_resource if search.untuned else 0),
            other_assignments=len(search.probes) + search.untuned,
            gangs=1 if in_hand else min(search.max_parallel_jobs, plan.trials),
            limits=search.limits,
        )

    @property
    def units(self) -> int:
        """All that are trained at most."""
        return self.planned_units + self.other_units

    @property
    def assignments(self) -> int:
        """All in which they are trained at most."""
        return self.planned_assignments + self.other_assignments

    def forecast(self, pace: ManyWorkers, *, source: str, used: float = 1.0) -> Forecast:
        """The job's forecast at a pace.

        Args:
            pace: of a gang.
            source: where it comes from.
            used: what part of their plans earlier jobs trained; 1 where nothing is known.
        """
        units = used * self.planned_units + self.other_units
        assignments = used * self.planned_assignments + self.other_assignments
        worth = busy_gangs(pace, units=units, assignments=assignments, gangs=self.gangs)
        at_most = self._amount(pace, self.units, self.assignments, self.gangs)
        expected = self._amount(pace, units, assignments, worth)
        return Forecast(
            source=source,
            at_most=at_most,
            expected=expected,
            currency=self._tariff.currency if self._tariff else "",
            ends_early=self._ends_early(expected),
            doubts=ONE_UNIT if pace.cold else "",
        )

    @property
    def _tariff(self) -> Tariff | None:
        return self.limits.tariff

    def _amount(self, pace: ManyWorkers, units: float, assignments: float, gangs: int) -> Amount:
        work = units * pace.a_round + assignments * pace.an_assignment
        worker_seconds = pace.workers * (work + gangs * pace.held)
        return Amount(
            worker_seconds=worker_seconds,
            wall_seconds=job_on_gangs(pace, units=units, assignments=assignments, gangs=gangs),
            cost=self._tariff.of(worker_seconds) if self._tariff else None,
        )

    def _ends_early(self, expected: Amount) -> str:
        if self._tariff and expected.cost is not None and expected.cost > self.limits.max_cost:
            return f"It ends before, at max_cost, {money(self.limits.max_cost, self._tariff.currency)}."
        if expected.wall_seconds > self.limits.max_seconds:
            return f"It ends before, at max_runtime_in_seconds, {self.limits.max_seconds:g} s."
        return ""
