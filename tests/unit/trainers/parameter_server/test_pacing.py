"""Who goes on and what is applied: the laws of each mode, over any order of events."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from trainers.parameter_server.server.pacing import Pacing
from trainers.parameter_server.settings import Settings


class Race:
    """Workers that step against several servers, one event at a time, in a drawn order.

    A push arrives at each server at another time, and a worker steps again once every server lets it.
    """

    def __init__(self, settings: Settings, steps: list[list[int]], seed: int) -> None:
        self.random = random.Random(seed)
        self.servers = [Pacing(settings) for _ in range(settings.num_servers)]
        self.workers = range(settings.workers)
        self.left = [list(rows) for rows in steps]
        self.state = ["steps" for _ in self.workers]
        self.travels: list[tuple[int, int, int | None]] = []
        self.heard: list[set[int]] = [set() for _ in self.workers]
        self.applied: list[list[tuple[int, ...]]] = [[] for _ in self.servers]
        self.done = [0 for _ in self.workers]
        self.lead = 0

    def run(self) -> None:
        """Until all have met; everyone who can do something may be drawn next."""
        while events := self._events():
            kind, *what = self.random.choice(events)
            getattr(self, kind)(*what)
        assert self.state == ["met"] * len(self.workers), "somebody waits for ever"

    def _events(self) -> list[Any]:
        found: list[Any] = [("_start", rank) for rank in self.workers if self.state[rank] == "steps"]
        found += [("_arrive", index) for index in range(len(self.travels))]
        for rank in self.workers:
            if self.state[rank] in ("waits", "meets"):
                found += [
                    ("_hear", rank, number)
                    for number, server in enumerate(self.servers)
                    if number not in self.heard[rank]
                    and not any(travel[:2] == (rank, number) for travel in self.travels)
                    and not server.missing(rank)
                ]
        return found

    def _start(self, rank: int) -> None:
        steps = self.left[rank]
        rows = steps.pop(0) if steps else None
        self.state[rank] = "meets" if rows is None else "waits"
        self.done[rank] += rows is not None
        self.heard[rank] = set()
        self.travels += [(rank, number, rows) for number in range(len(self.servers))]

    def _arrive(self, index: int) -> None:
        rank, number, rows = self.travels.pop(index)
        server = self.servers[number]
        made = server.meet(rank) if rows is None else server.push(rank, rows)
        if made:
            self.applied[number].append(made)

    def _hear(self, rank: int, number: int) -> None:
        if self.state[rank] == "waits":
            self.servers[number].pull(rank)
        self.heard[rank].add(number)
        if len(self.heard[rank]) == len(self.servers):
            if self.state[rank] == "meets":
                self.state[rank] = "met"
                return
            self.state[rank] = "steps"
            racing = [other for other in self.workers if self.state[other] not in ("meets", "met")]
            self.lead = max(self.lead, self.done[rank] - min(self.done[other] for other in racing))


@st.composite
def races(draw: Any, **fixed: Any) -> Race:
    workers = draw(st.integers(1, 5))
    backup = draw(st.integers(0, workers - 1))
    chosen = {
        "mode": draw(st.sampled_from(["sync", "async", "bounded"])),
        "num_servers": draw(st.integers(1, 3)),
        "staleness_bound": draw(st.integers(0, 3)),
        "backup_workers": backup,
    }
    # Ends of passes differ, and a step may have no rows.
    steps = draw(
        st.lists(st.lists(st.sampled_from([0, 1, 5]), max_size=8), min_size=workers, max_size=workers).map(list)
    )
    return Race(Settings.of({**chosen, **fixed}, workers), steps, draw(st.integers(0, 2**32)))


@settings(deadline=None)
@given(races())
def test_nobody_waits_for_ever_and_every_push_is_counted_once(race: Race) -> None:
    pushed = sum(rows > 0 for steps in race.left for rows in steps)
    race.run()
    for server, applied in zip(race.servers, race.applied, strict=True):
        assert server.pushes == pushed == sum(server.staleness.values())
        assert server.updates == len(applied)
        assert sum(map(len, applied)) + server.dropped == pushed
        assert server.meetings == 1


@settings(deadline=None)
@given(races(mode="async"))
def test_async_applies_every_push_by_itself(race: Race) -> None:
    race.run()
    for server in race.servers:
        assert server.updates == server.pushes
        assert server.dropped == 0


@settings(deadline=None)
@given(races(mode="bounded"))
def test_bounded_nobody_that_steps_is_further_ahead_than_the_bound(race: Race) -> None:
    race.run()
    assert race.lead <= race.servers[0]._bound
    assert all(server.updates == server.pushes for server in race.servers)


@settings(deadline=None)
@given(races(mode="sync", backup_workers=0))
def test_sync_makes_one_update_a_round_and_knows_no_staleness(race: Race) -> None:
    rounds = [
        tuple(rank for rank in race.workers if index < len(race.left[rank]) and race.left[rank][index])
        for index in range(max(map(len, race.left)))
    ]
    race.run()
    for server, applied in zip(race.servers, race.applied, strict=True):
        assert applied == [ranks for ranks in rounds if ranks]
        assert set(server.staleness) <= {0}
        assert server.dropped == 0


@settings(deadline=None)
@given(races(mode="sync"))
def test_sync_with_backups_averages_only_gradients_of_the_parameters_as_they_are(race: Race) -> None:
    race.run()
    for server in race.servers:
        assert server.dropped >= sum(count for steps, count in server.staleness.items() if steps > 0)


def test_a_round_ends_without_the_backup_workers_and_what_they_push_later_is_dropped() -> None:
    pacing = Pacing(Settings.of({"mode": "sync", "backup_workers": 1}, 3))
    assert pacing.push(2, 10) == ()
    assert pacing.missing(2) == [0, 1]
    assert pacing.push(0, 10) == (0, 2)
    assert pacing.missing(0) == pacing.missing(2) == []
    assert pacing.push(1, 10) == ()
    assert pacing.missing(1) == []
    assert (pacing.updates, pacing.dropped, pacing.staleness) == (1, 1, Counter({0: 2, 1: 1}))


def test_one_worker_alone_is_never_stale() -> None:
    for mode in ("sync", "async", "bounded"):
        pacing = Pacing(Settings.of({"mode": mode}, 1))
        for _ in range(5):
            assert pacing.push(0, 3) == (0,)
            assert pacing.missing(0) == []
            pacing.pull(0)
        assert pacing.staleness == Counter({0: 5})


@pytest.mark.parametrize("bound", [0, 2])
def test_bounded_waits_for_the_slowest_and_says_for_whom(bound: int) -> None:
    pacing = Pacing(Settings.of({"mode": "bounded", "staleness_bound": bound}, 3))
    for _ in range(bound):
        pacing.push(0, 1)
        assert pacing.missing(0) == []
    pacing.push(0, 1)
    assert pacing.missing(0) == [1, 2]
    pacing.push(1, 0)
    assert pacing.missing(0) == [2]
    pacing.meet(2)
    assert pacing.missing(0) == []
