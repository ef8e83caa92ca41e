"""Fair shares: within the cluster, by priority, with nothing left over that somebody wants, and nobody starved."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.train import ScalingConfig

from trainers.assignment import Assignment, GangUp, Report, Segment
from trainers.cluster import Cluster
from trainers.gang import WorkerContext
from trainers.ray_gangs import RayGangs
from trainers.shares import TURN_SECONDS, Claim, fair_shares

LOOK = 5  # Seconds between two looks of simulated jobs.
NEEDS = ({"CPU": 1.0}, {"CPU": 2.0}, {"CPU": 1.0, "GPU": 1.0}, {"GPU": 0.5})


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    return [
        Claim(
            name=f"job{number}",
            priority=draw(st.integers(1, 4)),
            need=draw(st.sampled_from(NEEDS)),
            wants=tuple(draw(st.lists(st.integers(1, 4), max_size=6))),
            holds=tuple(draw(st.lists(st.integers(1, 4), max_size=2))),
            turns=draw(st.floats(0, 1000)),
        )
        for number in range(draw(st.integers(1, 5)))
    ]


@settings(deadline=None)
@given(claims(), st.floats(0, 16), st.floats(0, 4), st.randoms(use_true_random=False))
def test_shares_fit_are_wanted_and_leave_nothing_that_somebody_could_use(
    jobs: list[Claim], cpus: float, gpus: float, random: Any
) -> None:
    capacity = {"CPU": cpus, "GPU": gpus}
    shares = fair_shares(jobs, capacity)
    left = Counter(capacity)
    for job in jobs:
        assert not Counter(shares[job.name]) - Counter(job.wants)
        for name, amount in job.need.items():
            left[name] -= amount * sum(shares[job.name])
    assert all(amount > -1e-9 for amount in left.values())
    for job in jobs:
        for workers in Counter(job.wants) - Counter(shares[job.name]):
            assert any(left[name] < amount * workers for name, amount in job.need.items()), "room that nobody uses"
    shuffled = random.sample(jobs, len(jobs))
    assert fair_shares(shuffled, capacity) == shares


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(10, 60))
def test_shares_go_by_priority(one: int, other: int, cpus: int) -> None:
    jobs = [
        Claim(name="a", priority=one, need={"CPU": 1.0}, wants=(1,) * 100),
        Claim(name="b", priority=other, need={"CPU": 1.0}, wants=(1,) * 100),
    ]
    shares = fair_shares(jobs, {"CPU": float(cpus)})
    mine, others = len(shares["a"]), len(shares["b"])
    assert mine + others == cpus
    assert abs(mine / one - others / other) <= 1 / min(one, other) + 1e-9


def test_what_one_job_does_not_want_goes_to_the_others() -> None:
    jobs = [
        Claim(name="small", priority=1, need={"CPU": 1.0}, wants=(2,)),
        Claim(name="large", priority=1, need={"CPU": 1.0}, wants=(2,) * 20),
    ]
    assert fair_shares(jobs, {"CPU": 12.0}) == {"small": (2,), "large": (2,) * 5}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 3), min_size=2, max_size=4))
def test_where_there_is_room_for_one_gang_every_job_has_its_turns(priorities: list[int]) -> None:
    turns, served, holder = [0.0] * len(priorities), [0.0] * len(priorities), -1
    for _ in range(0, 20_000, LOOK):
        jobs = [
            Claim(name=f"{n}", priority=p, need={"CPU": 1.0}, wants=(1,), holds=(1,) * (holder == n), turns=turns[n])
            for n, p in enumerate(priorities)
        ]
        shares = fair_shares(jobs, {"CPU": 1.0})
        (holder,) = (n for n in range(len(priorities)) if shares[f"{n}"])
        turns[holder] += LOOK / priorities[holder]
        served[holder] += LOOK
    fair = [20_000 * p / sum(priorities) for p in priorities]
    assert all(abs(got - due) <= 2 * TURN_SECONDS * len(priorities) for got, due in zip(served, fair, strict=True))


class Waits:
    """A program whose assignments take as many tenths of a second as they have units."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        return {}

    def train(self, assignment: Assignment, on_report: Any) -> Segment:
        time.sleep(0.1 * (assignment.stop - assignment.start))
        return Segment(
            reports=(Report(step=assignment.stop, metrics={}),),
            checkpoint="",
            checkpoint_bytes=0,
            training_seconds=0.0,
            checkpointing_seconds=0.0,
            first_step_at=time.time(),
        )

    def close(self) -> None:
        pass


class Job:
    """A driver's loop around its gangs: they are always wanted, and none of them has ever anything to serve."""

    def __init__(self, name: str, wants: Mapping[int, int], priority: int = 1) -> None:
        scaling = ScalingConfig(num_workers=1, resources_per_worker={"CPU": 5})
        shared = Cluster(private=False)
        self.gangs = RayGangs(name, lambda workers: Waits(), scaling, priority=priority, eager=True, on=shared)
        self.wants = wants
        self.up: set[str] = set()

    def step(self) -> None:
        self.up -= set(self.gangs.give_back())
        self.up -= set(self.gangs.want(self.wants, None))
        self.up |= {event.gang for event in self.gangs.events(0.1) if isinstance(event, GangUp)}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_cluster")
def test_a_job_gives_gangs_back_for_another_and_takes_them_again_when_that_has_ended() -> None:
    """Three gangs fit. With the same priority the first job would keep both of its own."""
    first, second = Job("first", {1: 2}), Job("second", {1: 3}, priority=2)
    try:
        _until("the first job has what it wants", lambda: len(first.up) == 2, first)
        _until("the second has its share", lambda: len(second.up) == 2 and len(first.up) == 1, first, second)
        second.wants = {}
        _until("the second has nothing to run", lambda: not second.up and len(first.up) == 2, first, second)
    finally:
        first.gangs.close()
        second.gangs.close()


def _until(what: str, done: Any, *jobs: Job) -> None:
    deadline = time.monotonic() + 600
    while not done():
        assert time.monotonic() < deadline, f"waited 600 s until {what}: {[job.up for job in jobs]}"
        for job in jobs:
            job.step()
