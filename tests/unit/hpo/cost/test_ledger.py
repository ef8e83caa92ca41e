"""Billed worker-seconds: nothing is lost, counted twice or put to the wrong use, whatever happens to the gangs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from hpo.cost.ledger import Entry, Kind, Ledger
from tests.support import assignments
from trainers.gangs.messages import Segment

WORKERS = {"one": 1, "three": 3, "four": 4}


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def make() -> tuple[Ledger, Clock, list[Entry]]:
    clock, entries = Clock(), []
    return Ledger(entries.extend, clock), clock, entries


def segment(training: float, checkpointing: float = 0.0) -> Segment:
    return assignments.segment(training_seconds=training, checkpointing_seconds=checkpointing)


@dataclass
class Life:
    """What a gang's seconds went into, counted here one by one."""

    phase: str = "down"
    since: int = 0
    spent: dict[Kind, float] = field(default_factory=lambda: defaultdict(float))


def there(lives: dict[str, Life]) -> bool:
    """Whether there is a gang, be it one that comes back after a loss."""
    return any(life.phase not in ("down", "ended") for life in lives.values())


# Which gang, seconds that pass before, what happens to it if it can, and what the worker says it measured.
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(sorted(WORKERS)),
        st.integers(0, 50),
        st.sampled_from(["go on", "go on", "go on", "fail", "lose", "end"]),
        st.integers(0, 60),
        st.integers(0, 60),
    ),
    max_size=40,
)


@given(EVENTS)
def test_what_is_booked_is_workers_times_the_time_held(events: list[tuple[str, int, str, int, int]]) -> None:
    """Whole seconds, so that sums are exact."""
    ledger, clock, entries = make()
    lives = {gang: Life() for gang in WORKERS}
    trial, with_gang = "a-trial", 0
    for gang, seconds, what, training, checkpointing in events:
        life = lives[gang]
        clock.now += seconds
        with_gang += seconds * there(lives)
        assert ledger.gang_seconds == with_gang
        passed = int(clock.now) - life.since
        match life.phase, what:
            case "ended", _:
                continue
            case "down", _:
                life.since = int(clock.now) - 7
                ledger.up(gang, WORKERS[gang], held_since=clock.now - 7)
                life.spent[Kind.STARTING] += 7
                life.phase = "free"
            case "lost", "end":
                ledger.ended(gang)
                life.spent[Kind.IDLE] += passed
                life.phase = "ended"
            case "lost", _:
                ledger.up(gang, WORKERS[gang], held_since=0.0)
                life.spent[Kind.STARTING] += passed
                life.phase = "free"
            case _, "end":
                ledger.ended(gang)
                life.spent[Kind.IDLE] += passed
                life.phase = "ended"
            case "free", "lose":
                ledger.lost(gang, "")
                life.spent[Kind.IDLE] += passed
                life.phase = "lost"
            case "free", _:
                ledger.assigned(gang)
                life.spent[Kind.IDLE] += passed
                life.phase = "busy"
            case "busy", "lose":
                ledger.lost(gang, trial)
                life.spent[Kind.TRAINING] += passed
                life.phase = "lost"
            case "busy", "fail":
                ledger.served(gang, trial, None)
                life.spent[Kind.TRAINING] += passed
                life.phase = "free"
            case _:
                ledger.served(gang, trial, segment(training, checkpointing))
                trained = min(training, passed)
                saved = min(checkpointing, passed - trained)
                life.spent[Kind.TRAINING] += trained
                life.spent[Kind.CHECKPOINTING] += saved
                life.spent[Kind.IDLE] += passed - trained - saved
                life.phase = "free"
        life.since = int(clock.now)
    clock.now += 5
    with_gang += 5 * there(lives)
    for life in lives.values():
        if life.phase not in ("down", "ended"):
            life.spent[Kind.IDLE] += clock.now - life.since
    ledger.close()
    clock.now += 5
    assert ledger.gang_seconds == with_gang

    for gang, life in lives.items():
        for kind in Kind:
            booked = sum(entry.worker_seconds for entry in entries if (entry.gang, entry.kind) == (gang, kind))
            assert booked == WORKERS[gang] * life.spent[kind], (gang, kind)
    assert ledger.total == sum(entry.worker_seconds for entry in entries) == sum(ledger.by_trial.values())
    assert ledger.gangs == sum(life.phase != "down" for life in lives.values())
    assert all(entry.worker_seconds > 0 for entry in entries)
    ends: dict[str, float] = {}
    for entry in entries:
        assert entry.workers == WORKERS[entry.gang]
        began = entry.at - entry.worker_seconds / entry.workers
        assert began == ends.get(entry.gang, began), "a gang's entries follow each other"
        ends[entry.gang] = entry.at
    for trial_id, billed in ledger.by_trial.items():
        assert billed == sum(entry.worker_seconds for entry in entries if entry.trial_id == trial_id)


def test_a_life_in_kinds() -> None:
    ledger, clock, entries = make()
    ledger.up("gang", 3, held_since=990.0)
    clock.now += 2
    ledger.assigned("gang")
    clock.now += 10
    ledger.served("gang", "trial", segment(7.0, 2.0))
    clock.now += 4
    ledger.close()
    assert [(entry.trial_id, entry.kind, entry.worker_seconds, entry.at) for entry in entries] == [
        ("", Kind.STARTING, 30.0, 1000.0),
        ("", Kind.IDLE, 6.0, 1002.0),
        ("trial", Kind.TRAINING, 21.0, 1009.0),
        ("trial", Kind.CHECKPOINTING, 6.0, 1011.0),
        ("trial", Kind.IDLE, 3.0, 1012.0),
        ("", Kind.IDLE, 12.0, 1016.0),
    ]
    assert ledger.totals == {Kind.STARTING: 30, Kind.TRAINING: 21, Kind.CHECKPOINTING: 6, Kind.IDLE: 21}
    assert ledger.by_trial == {"": 48.0, "trial": 30.0}


@pytest.mark.parametrize(
    ("training", "checkpointing", "booked"),
    [
        (20.0, 3.0, {Kind.TRAINING: 10.0}),
        (8.0, 20.0, {Kind.TRAINING: 8.0, Kind.CHECKPOINTING: 2.0}),
        (0.0, 0.0, {Kind.IDLE: 10.0}),
    ],
)
def test_a_measured_part_is_never_more_than_has_passed(
    training: float, checkpointing: float, booked: dict[Kind, float]
) -> None:
    """Two clocks: the worker's, which measures the parts, and the driver's, which bills."""
    ledger, clock, entries = make()
    ledger.up("gang", 1, held_since=1000.0)
    clock.now += 10
    ledger.served("gang", "trial", segment(training, checkpointing))
    assert {entry.kind: entry.worker_seconds for entry in entries} == booked


def test_a_gang_that_starts_again_is_billed_for_it() -> None:
    ledger, clock, _ = make()
    ledger.up("gang", 2, held_since=1000.0)
    clock.now += 3
    ledger.lost("gang", "trial")
    clock.now += 8
    ledger.up("gang", 2, held_since=1000.0)
    assert ledger.totals[Kind.TRAINING] == 6.0
    assert ledger.totals[Kind.STARTING] == 16.0
    assert ledger.gangs == 1


def test_a_gang_that_never_came_up_costs_nothing() -> None:
    ledger, clock, entries = make()
    clock.now += 30
    ledger.lost("gang", "")
    ledger.ended("gang")
    ledger.close()
    assert not entries
    assert ledger.total == 0.0


def test_a_gang_that_has_ended_is_billed_no_more() -> None:
    ledger, clock, _ = make()
    ledger.up("gang", 1, held_since=1000.0)
    clock.now += 5
    ledger.ended("gang")
    clock.now += 100
    ledger.ended("gang")
    ledger.close()
    assert ledger.total == 5.0
