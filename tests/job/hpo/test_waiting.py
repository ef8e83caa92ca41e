"""Seconds in which a job waits for machines, and those in which it has some, over all its runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hpo.jobs.run import Ended
from hpo.strategies.hyperband import lay_out
from tests.support.drivers import WORKERS, Disturbance
from tests.support.job_life import LOST, World
from tests.support.job_search import Aim
from tests.support.refusals import mentions

START = 5.0
"""Seconds in which a gang of a world starts: its job waits."""


@pytest.fixture
def world() -> Iterator[World]:
    made = World(aim=Aim(plan=lay_out(9, 1, 9)), parallel=1)
    yield made
    made.close()


def measured(reason: str, *names: object) -> list[float]:
    """The seconds that a reason measured, which it says with a decimal; it has to have these names."""
    return [float(each) for each in re.findall(r"\b\d+\.\d\b", mentions(reason, *names))]


def trained(world: World) -> dict[str, int]:
    """How far each trial has come."""
    return {trial.trial_id: trial.resource for trial in world.rows()[1]}


def test_a_job_that_ran_for_its_time_does_not_run_for_it_again_where_it_is_resumed(world: World) -> None:
    world.limit(max_runtime_in_seconds=10, max_wait=1000)
    first = world.drive(Disturbance())
    assert isinstance(first, Ended)
    assert measured(first.reason, "max_runtime_in_seconds", "10 s") == [pytest.approx(15, abs=5)]
    before = trained(world)
    world.now += LOST
    second = world.drive(Disturbance())
    assert isinstance(second, Ended)
    assert measured(second.reason, "max_runtime_in_seconds", "10 s") == [pytest.approx(15, abs=5)]
    assert trained(world) == before
    world.now += LOST
    world.limit(max_runtime_in_seconds=1000, max_wait=2000)
    third = world.drive(Disturbance())
    assert isinstance(third, Ended)
    assert third.status == "Completed"


@pytest.mark.parametrize("ends", [("killed", "stopped"), ("stopped", "killed"), ("Ctrl-C twice", "killed")])
def test_what_a_job_waited_counts_as_waiting_in_every_run(world: World, ends: tuple[str, str]) -> None:
    acts: dict[str, Callable[[], None]] = {
        "killed": partial(world.kill, heard=True),
        "stopped": world.stop,
        "Ctrl-C twice": partial(world.interrupt, 2),
    }
    for end in ends:
        world.drive(Disturbance(acts={(4, 0): acts[end]}))
        world.now += LOST
    world.limit(max_runtime_in_seconds=29, max_wait=30)
    ended = world.drive(Disturbance())
    assert isinstance(ended, Ended)
    waited = 3 * START
    seconds = measured(ended.reason, "max_wait", "30 s", "gang")
    assert sorted(seconds) == [waited, pytest.approx(35, abs=5)]
    assert ended.summary["wall_seconds"] - waited == pytest.approx(world.held / WORKERS - waited)
    assert ended.summary["gang_seconds"] == pytest.approx(ended.summary["wall_seconds"] - waited)


def test_a_job_that_only_waited_has_not_run(world: World) -> None:
    """Its driver is killed as its first gang is about to come up, time and again."""
    for _ in range(4):
        world.drive(Disturbance(acts={(2, 0): partial(world.kill, heard=True)}))
        world.now += LOST
    world.limit(max_runtime_in_seconds=3, max_wait=1000)
    ended = world.drive(Disturbance())
    assert isinstance(ended, Ended)
    assert measured(ended.reason, "max_runtime_in_seconds", "3 s") == [pytest.approx(3.5, abs=0.5)]
