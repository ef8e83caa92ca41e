"""What sequences of a job's life found: each failure as a plain test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from hpo.jobs.launch.background import end_abandoned
from hpo.jobs.run import Ended
from hpo.record.store import Store
from tests.support.drivers import NO_ROOM, Disturbance
from tests.support.job_aims import aim, fail, undisturbed
from tests.support.job_life import LOST, World
from tests.support.refusals import mentions
from trainers.errors import DataError, ResourcesError


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    plan, number, parallel = request.param
    made = World(aim=aim(plan, number), parallel=parallel)
    yield made
    made.close()


@pytest.mark.parametrize("world", [(2, 2, 4)], indirect=True)
def test_a_run_that_recalls_a_complete_job_knows_the_untuned_run_too(world: World) -> None:
    """Its driver was killed before it had written that the job is complete: nothing of it is swept away."""
    world.drive(Disturbance())
    once = world.answer()
    world.now += LOST
    world.drive(Disturbance())
    world.check()
    assert world.answer() == once


@pytest.mark.parametrize("world", [(0, 0, 1)], indirect=True)
def test_a_storage_that_goes_before_the_first_model_is_not_made_anew(world: World) -> None:
    world.comes_back_after = 1_000
    world.drive(Disturbance(acts={(1, 0): lambda: world.storage_goes(file=False)}))
    world.now += LOST
    stopped = world.drive(Disturbance())
    assert isinstance(stopped, Ended)
    assert stopped.status == "Stopped"
    assert not world.folder.exists()
    world.storage_comes()
    world.now += LOST
    world.drive(Disturbance())
    assert world.answer() == undisturbed(0, 0)


@pytest.mark.parametrize("world", [(0, 0, 1)], indirect=True)
def test_gangs_of_a_driver_that_died_are_billed_once(world: World) -> None:
    dies = Disturbance(acts={(1, 0): lambda: world.kill(heard=False)})
    world.drive(Disturbance(acts={(2, 0): lambda: world.take_over(dies)}))
    world.now += LOST
    world.drive(Disturbance())
    world.check()


@pytest.mark.parametrize("world", [(0, 0, 1)], indirect=True)
@pytest.mark.parametrize("who", ["a driver that dies at once", "hpo stop", "hpo delete in vain"])
def test_who_takes_the_lease_without_driving_does_not_lengthen_the_bill(world: World, who: str) -> None:
    world.drive(Disturbance(acts={(4, 0): lambda: world.kill(heard=True)}))
    held = world.held
    assert held
    world.now += LOST
    with Store(world.url) as record:
        match who:
            case "hpo stop":
                assert end_abandoned(record, "job")
            case "hpo delete in vain":
                with pytest.raises(DataError):
                    record.delete_job("job", fail)
            case _:
                with record.writer("job"):
                    pass
    world.check()
    world.now += LOST
    world.drive(Disturbance())
    assert world.held > held
    world.check()


@pytest.mark.parametrize("world", [(0, 0, 3)], indirect=True)
@pytest.mark.parametrize("event", [2, 4])
def test_a_second_ctrl_c_at_any_moment_leaves_no_second_unbilled(world: World, event: int) -> None:
    found: Any = None
    for inside in range(20):
        world.now += LOST
        before, found = found, world.drive(Disturbance(acts={(event, inside): lambda: world.interrupt(2)}))
        world.check()
        if isinstance(found, Ended):  # Each got a little further.
            break
    assert isinstance(before, KeyboardInterrupt)


@pytest.mark.parametrize("inside", range(10, 24))
@pytest.mark.parametrize("world", [(0, 0, 3)], indirect=True)
def test_a_second_ctrl_c_while_gangs_are_given_back_leaves_no_second_unbilled(world: World, inside: int) -> None:
    acts = {(3, 0): lambda: world.interrupt(1), (5, inside): lambda: world.interrupt(1)}
    assert isinstance(world.drive(Disturbance(acts=acts)), Ended | KeyboardInterrupt)
    world.check()


@pytest.mark.parametrize("world", [(0, 0, 3)], indirect=True)
@pytest.mark.parametrize("how", ["Ctrl-C", "killed"])
def test_a_job_whose_driver_did_not_come_to_make_its_folder_goes_on(world: World, how: str) -> None:
    inside = 0
    while not world.folder.exists():
        world.now += LOST
        act = partial(world.interrupt, 2) if how == "Ctrl-C" else partial(world.kill, heard=True)
        ended = world.drive(Disturbance(acts={(0, inside): act}))
        assert not isinstance(ended, Ended), ended
        inside += 1
    assert inside > 1
    world.now += LOST
    world.drive(Disturbance())
    assert world.answer() == undisturbed(0, 0)


@pytest.mark.parametrize("world", [(0, 0, 3)], indirect=True)
@pytest.mark.parametrize("inside", range(5))
def test_a_storage_that_goes_just_when_a_worker_writes_is_not_made_anew(world: World, inside: int) -> None:
    world.comes_back_after = 1_000
    world.drive(Disturbance(acts={(4, inside): lambda: world.storage_goes(file=False)}))
    assert world.aside.exists()
    assert not world.folder.exists()


@pytest.mark.parametrize("world", [(2, 4, 4)], indirect=True)
@pytest.mark.parametrize("stops", [(5, 6), (6, 6), (7, 4)])
def test_a_criterion_that_is_met_behind_a_stop_lets_no_model_go_for_one_that_will_not_count(
    world: World, stops: tuple[int, int]
) -> None:
    for event in stops:
        world.now += LOST
        world.drive(Disturbance(acts={(event, 0): world.stop}))
        world.check()
    world.now += LOST
    world.drive(Disturbance())
    assert world.answer() == undisturbed(2, 4)


@pytest.mark.parametrize("world", [(0, 4, 4)], indirect=True)
def test_a_trial_that_does_not_count_goes_on_from_nowhere(world: World) -> None:
    """It was halted on its way when the job was complete; its models are gone, and the record names none."""
    world.drive(Disturbance())
    world.check()
    assert world.answer() == undisturbed(0, 4)


@pytest.mark.parametrize("world", [(0, 0, 1)], indirect=True)
def test_where_room_is_short_the_gangs_of_a_driver_that_may_only_stand_still_are_named(world: World) -> None:
    short = Disturbance(no_room=True)
    alone = world.drive(short)
    assert str(alone) == NO_ROOM
    world.drive(Disturbance(acts={(4, 0): lambda: world.kill(heard=True)}))
    world.now += LOST
    found = world.drive(short)
    assert isinstance(found, ResourcesError)
    mentions(str(found), NO_ROOM, "job", f"process {os.getpid()}", f"kill -KILL {os.getpid()}")
    assert world.rows()[0].reason == str(found)
    world.now += LOST
    world.drive(Disturbance())
    assert world.answer() == undisturbed(0, 0)
