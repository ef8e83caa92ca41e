"""Limits of time and money, in simulation: kept to within what was in hand when they were reached."""

from __future__ import annotations

import math
import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

from hpo.cost.ledger import Entry, Kind, Ledger
from hpo.cost.limits import Budget, Limits
from hpo.cost.prices import Tariff
from hpo.search.controller import Controller
from hpo.strategies.hyperband import Plan, lay_out
from tests.support.properties import examples
from tests.support.refusals import mentions
from tests.support.simulated import WORKERS, Kept, outcome, simulate
from trainers.gangs.messages import Assignment

CHEAP = Tariff(per_worker_hour=3600.0, currency="EUR")
"""A worker-second costs 1."""

START_SECONDS = 8.0


def measured(reason: str, *names: object) -> list[float]:
    """The seconds that a reason measured, which it says with a decimal; it has to have these names."""
    return [float(each) for each in re.findall(r"\b\d+\.\d(?= s\b)", mentions(reason, *names))]


def limited(max_cost: float, **options: object) -> tuple[Controller, Kept]:
    controller, _, record = simulate(limits=Limits(max_cost=max_cost, tariff=CHEAP), **options)  # type: ignore[arg-type]
    return controller, record


# ---- in simulation


@settings(max_examples=examples(60), deadline=None)
@given(
    max_cost=st.floats(1.0, 3000.0),
    parallel=st.integers(1, 6),
    trials=st.integers(1, 40),
    units=st.integers(1, 30),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    losses=st.frozensets(st.integers(0, 60), max_size=4),
    seed=st.integers(0, 5),
)
def test_a_job_costs_no_more_than_its_limit_and_what_was_in_hand(
    max_cost: float, parallel: int, trials: int, units: int, sizes: list[int], losses: frozenset[int], seed: int
) -> None:
    """It ends when what was being trained as the limit was reached is back, and is billed until then.

    A gang that starts is billed once it is up, so the limit may have been reached a start before that is known.
    """
    plan = lay_out(trials, 1, units)

    def seconds(assignment: Assignment) -> float:
        return 0.1 + random.Random(f"{seed}{assignment.trial_id}").random()

    controller, record = limited(
        max_cost,
        plan=plan,
        parallel=parallel,
        unit_seconds=seconds,
        losses=losses,
        workers=lambda values: random.Random(str(values.get("eta"))).choice(sizes),
    )
    if controller.ledger.total > max_cost:
        longest = max((entry.worker_seconds / entry.workers for entry in record.entries if entry.trial_id), default=0.0)
        end = max(entry.at for entry in record.entries)
        assert end - reached(record.entries, max_cost) <= START_SECONDS + max(longest, START_SECONDS) + 1e-6
    assert all(run.trial.is_finished() for run in controller.runs.values())
    if controller.stopped:
        mentions(controller.stopped, "max_cost", f"{max_cost:,.2f} EUR")
    else:
        assert len(controller.runs) == trials


def reached(entries: list[Entry], max_cost: float) -> float:
    """When so much had been spent, starts included: a gang is billed from its first entry's start to its last's end."""
    rates: Counter[float] = Counter()
    for entry in entries:
        rates[entry.at - entry.worker_seconds / entry.workers] += entry.workers
        rates[entry.at] -= entry.workers
    spent, rate, before = 0.0, 0, 0.0
    for now in sorted(rates):
        spent += rate * (now - before)
        if spent >= max_cost:
            return now - (spent - max_cost) / rate
        rate, before = rate + rates[now], now
    return before


@pytest.mark.parametrize("plan", [lay_out(30, 1, 30), lay_out(9, 1, 9)])
def test_a_job_that_fits_is_the_same_with_a_limit(plan: Plan) -> None:
    free, _, _ = simulate(plan=plan)
    cost = free.ledger.total
    controller, _ = limited(cost + 4 * WORKERS * START_SECONDS, plan=plan)
    assert not controller.stopped
    assert outcome(controller) == outcome(free)
    # One gang after the other is started, the first before anything is known: later, not differently.
    assert controller.ledger.total == pytest.approx(cost, rel=0.1)


def test_what_was_found_is_returned() -> None:
    controller, _ = limited(300.0)
    best = controller.best()
    assert best is not None
    assert 0 < controller.trained < 364
    assert math.isfinite(best.value)


def test_nothing_begins_once_the_limit_is_reached() -> None:
    """A money limit that the first start uses up: not even the probe is handed out."""
    controller, _ = limited(WORKERS * START_SECONDS - 1.0, probes=(1, 5))
    assert controller.trained == 0
    mentions(controller.stopped, "max_cost", "24.00 EUR", "23.00 EUR")
    assert set(controller.ledger.totals) == set(Kind)
    assert controller.ledger.total == controller.ledger.totals[Kind.STARTING]


def test_a_gang_is_not_started_that_cannot_be_paid() -> None:
    rich, _ = limited(1000.0)
    poor, _ = limited(2 * WORKERS * START_SECONDS + 10.0)
    assert rich.ledger.gangs == 4
    assert poor.ledger.gangs == 2
    assert poor.trained > 0


def test_a_job_that_needs_a_gang_it_cannot_pay_ends_with_the_reason() -> None:
    """Trials on 1 worker and on 40: what is left pays for the first kind only."""
    controller, _ = limited(
        150.0, parallel=1, workers=lambda values: 40 if values.get("eta", 0.0) > 0.5 else 1, untuned=False
    )
    assert controller.ledger.gangs == 1
    mentions(controller.stopped, "max_cost", "150.00 EUR", 40, "320.00 EUR")


def test_a_time_limit_says_what_was_measured() -> None:
    controller, gangs, _ = simulate(parallel=2, limits=Limits(max_seconds=60.0))
    assert measured(controller.stopped, "max_runtime_in_seconds", "60 s")[0] >= 60
    assert gangs.now < 60 + 33 + 10


# ---- the decisions


def budget(max_cost: float, spent: float = 0.0, start: float | None = 10.0) -> Budget:
    ledger = Ledger(lambda entries: None, lambda: spent)
    ledger.up("gang", 1, held_since=0.0)
    made = Budget(Limits(max_cost=max_cost, tariff=CHEAP), ledger)
    if start is not None:
        made.started(start)
    return made


SIZES = st.dictionaries(st.integers(1, 8), st.integers(0, 5), max_size=4)


@given(SIZES, SIZES, st.integers(0, 2), st.floats(0, 1000), st.floats(0, 1000), st.floats(0, 50))
def test_only_what_is_left_is_spent_on_starts(
    wanted: dict[int, int], up: dict[int, int], starting: int, limit: float, spent: float, start: float
) -> None:
    there = Counter(up)
    paid = budget(limit, spent, start).pays_for(wanted, there, starting)
    assert list(paid) == list(wanted), "the most urgent first"
    assert all(min(count, there[workers]) <= paid[workers] <= count for workers, count in wanted.items())
    new = sum(start * workers * max(0, paid[workers] - there[workers]) for workers in paid)
    assert new <= max(0.0, limit - spent) + 1e-6


@given(SIZES, SIZES, st.integers(0, 2))
def test_without_a_limit_all_that_is_wanted_is_paid(wanted: dict[int, int], up: dict[int, int], starting: int) -> None:
    made = Budget(Limits(max_seconds=1.0, tariff=CHEAP), Ledger(lambda entries: None))
    assert made.pays_for(wanted, Counter(up), starting) == wanted


def test_before_a_start_was_measured_there_is_one() -> None:
    made = budget(100.0, start=None)
    assert made.pays_for({3: 4, 1: 2}, Counter(), 0) == {3: 1, 1: 0}
    assert made.pays_for({3: 4, 1: 2}, Counter(), 1) == {3: 0, 1: 0}


def test_no_limit_is_never_reached() -> None:
    assert Limits().reached(1e12, 1e12) == ""
    assert Limits(tariff=CHEAP).reached(1e12, 1e12) == ""
    mentions(Limits(max_seconds=5.0).reached(5.0, 0.0), "max_runtime_in_seconds", "5.0 s", "5 s")


# ---- waiting for machines


def test_waiting_and_running_are_counted_together_against_max_wait_and_apart_against_the_runtime() -> None:
    limits = Limits(max_seconds=5.0, max_wait=20.0)
    assert limits.reached(15.0, 0.0, 11.0) == ""
    mentions(limits.reached(16.0, 0.0, 11.0), "max_runtime_in_seconds", "5.0 s", "5 s")
    assert measured(limits.reached(20.0, 0.0, 20.0), "max_wait", "20 s", "gang") == [20.0, 20.0]
    assert sorted(measured(limits.reached(20.0, 0.0, 17.0), "max_wait", "20 s", "gang")) == [17.0, 20.0]
    mentions(Limits(max_seconds=5.0).reached(5.0, 0.0, 5.0), "max_runtime_in_seconds")


def test_a_job_that_waits_for_its_gangs_runs_as_long_as_one_that_does_not() -> None:
    """The simulation's gangs start in 8 s, in which nothing runs."""
    limits = Limits(max_seconds=10.0, max_wait=1000.0)
    controller, gangs, _ = simulate(limits=limits)
    assert measured(controller.stopped, "max_runtime_in_seconds", "10 s") == [pytest.approx(15, abs=5)]
    assert gangs.now >= 18.0
    controller, gangs, _ = simulate(limits=Limits(max_wait=12.0))
    seconds = measured(controller.stopped, "max_wait", "12 s", "gang")
    assert sorted(seconds) == [8.0, pytest.approx(15, abs=5)]
    controller, gangs, _ = simulate(limits=Limits(max_seconds=10.0))
    assert gangs.now < 18.0


def test_shares_of_limits_count_what_the_limits_count() -> None:
    assert Limits().shares(100.0, 5.0) == {}
    limits = Limits(max_seconds=200.0, max_cost=20.0, tariff=CHEAP)
    assert limits.shares(100.0, 5.0, waited=40.0) == {
        "max_runtime_in_seconds": (0.5, 200.0),
        "max_cost": (pytest.approx(0.25), 20.0),
    }
    patient = Limits(max_seconds=200.0, max_wait=1000.0)
    assert patient.shares(100.0, 5.0, waited=40.0) == {"max_runtime_in_seconds": (0.3, 200.0)}
