"""A job's whole life as a state machine: whatever befalls it, nothing is lost and its answer is the undisturbed one's.

    python -m tests.hpo.test_job_life 20000

runs so many sequences. Each failure that it found is a plain test below.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hpo import TuningJobCompletionCriteriaConfig
from hpo.disposal import Files
from hpo.hyperband import lay_out, run_all
from hpo.job import Ended
from hpo.job_folder import FOLDER_ID, check_free, claim
from hpo.store import JobRow, Store
from tests.support.job_life import LOST, SPEC, Disturbance, World
from trainers.errors import ConfigurationError, LeaseError, ResourcesError

PLANS = [lay_out(9, 1, 9), lay_out(5, 1, 3), run_all(6, 4)]
CRITERIA = [
    None,
    TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.7),
    TuningJobCompletionCriteriaConfig(max_number_of_training_jobs_not_improving=3),
]
EVENTS = st.integers(0, 30)


def world_of(plan: int, criteria: int, parallel: int = 3) -> World:
    root = Path(tempfile.mkdtemp(prefix="warmband-life-")) / "world"
    return World(root=root, plan=PLANS[plan], criteria=CRITERIA[criteria], parallel=parallel)


def done_with(world: World) -> None:
    world.close()
    shutil.rmtree(world.root.parent)


@cache
def undisturbed(plan: int, criteria: int) -> dict[str, Any]:
    """The answer of a job that nothing happens to, on one gang."""
    world = world_of(plan, criteria, parallel=1)
    try:
        ended = world.drive(Disturbance())
        assert isinstance(ended, Ended)
        assert ended.status == "Completed"
        world.check()
        return world.answer()
    finally:
        done_with(world)


def interrupt(times: int) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


class JobLife(RuleBasedStateMachine):
    """Drivers come and go; between them the record and the files are looked at."""

    world: World | None = None
    plans = tuple(range(len(PLANS)))

    @initialize(plan=st.integers(0, 5), criteria=st.integers(0, 2), parallel=st.integers(1, 4))
    def begin(self, plan: int, criteria: int, parallel: int) -> None:
        plan = self.plans[plan % len(self.plans)]
        self.expected = undisturbed(plan, criteria)
        self.world = world_of(plan, criteria, parallel)
        self.losses = 0
        self.deleted = False

    # ---- drivers

    def drive(self, disturbance: Disturbance) -> Ended | BaseException:
        """The next driver, once the lease of the one before has expired."""
        assert self.world is not None
        self.world.now += LOST
        return self.world.drive(disturbance)

    @precondition(lambda self: self.open)
    @rule(at=EVENTS, heard=st.booleans())
    def is_killed(self, at: int, heard: bool) -> None:
        self.drive(Disturbance(before={at: lambda: self.world.kill(heard=heard)}))

    @precondition(lambda self: self.open)
    @rule(at=EVENTS)
    def is_stopped(self, at: int) -> None:
        self.drive(Disturbance(before={at: lambda: self.world.writers[-1].ask_to_stop()}))

    @precondition(lambda self: self.open)
    @rule(at=EVENTS, times=st.integers(1, 2))
    def gets_ctrl_c(self, at: int, times: int) -> None:
        self.drive(Disturbance(before={at: lambda: interrupt(times)}))

    @precondition(lambda self: self.open)
    @rule(at=EVENTS, file=st.booleans(), asks=st.integers(1, 40), then_killed=st.booleans())
    def loses_its_storage(self, at: int, file: bool, asks: int, then_killed: bool) -> None:
        def go() -> None:
            self.world.comes_back_after = asks
            self.world.storage_goes(file=file)

        before = {at: go}
        if then_killed:
            before[at + 1] = lambda: self.world.kill(heard=True)
        self.drive(Disturbance(before=before))

    @rule()
    def is_looked_at(self) -> None:
        """The one rule that a job which has ended has left."""
        if not self.deleted:
            self.world.rows()

    @precondition(lambda self: self.open)
    @rule()
    def finds_its_storage_again(self) -> None:
        self.world.storage_comes()

    @precondition(lambda self: self.open)
    @rule(at=EVENTS, events=st.integers(1, 10))
    def loses_its_database(self, at: int, events: int) -> None:
        def away(is_away: bool) -> None:
            self.world.database_away = is_away

        self.drive(Disturbance(before={at: lambda: away(True), at + events: lambda: away(False)}))

    @precondition(lambda self: self.open and self.losses < 2)
    @rule(at=EVENTS)
    def loses_workers(self, at: int) -> None:
        self.losses += 1
        self.drive(Disturbance(losses=frozenset({at})))

    @precondition(lambda self: self.open)
    @rule(at=EVENTS, seconds=st.sampled_from([-3600.0, 3600.0]))
    def sees_the_clock_jump(self, at: int, seconds: float) -> None:
        def jump() -> None:
            self.world.skew += seconds

        self.drive(Disturbance(before={at: jump, at + 5: lambda: interrupt(1)}))
        self.world.now += max(0.0, -seconds)

    @precondition(lambda self: self.open)
    @rule(at=EVENTS, killed_at=EVENTS)
    def is_taken_over(self, at: int, killed_at: int) -> None:
        other = Disturbance(before={killed_at: lambda: self.world.kill(heard=False)})
        self.drive(Disturbance(before={at: lambda: self.world.take_over(other)}))

    @precondition(lambda self: self.open)
    @rule(seconds=st.floats(1.0, 60.0))
    def reaches_a_limit(self, seconds: float) -> None:
        self.drive(Disturbance(max_seconds=seconds))

    @precondition(lambda self: self.open)
    @rule()
    def is_resumed_without_a_head(self) -> None:
        found = self.drive(Disturbance(no_head=True))
        assert isinstance(found, ResourcesError | Ended | ConfigurationError), found

    @precondition(lambda self: self.open)
    @rule(at=EVENTS)
    def is_resumed_too_early(self, at: int) -> None:
        """A driver died on another machine: nobody else drives before its lease has expired."""
        self.drive(Disturbance(before={at: lambda: self.world.kill(heard=True)}))
        job, _, _ = self.world.rows()
        if job.status != "Completed":  # Of which no driver is made.
            found = self.world.drive(Disturbance())
            assert isinstance(found, LeaseError) == bool(job.lease), found

    # ---- others

    @precondition(lambda self: self.open and self.world.folder.is_dir() and any(self.world.folder.iterdir()))
    @rule()
    def meets_a_job_of_its_name(self) -> None:
        folder, before = str(self.world.folder), sorted(self.world.folder.rglob("*"))
        other = JobRow(name="job", created_at=0.0, spec={**SPEC, FOLDER_ID: "another's"})
        with pytest.raises(ConfigurationError, match="another job"):
            check_free(folder, "job")
        with pytest.raises(ConfigurationError, match="another job"):
            claim(folder, other, begun=False)
        assert sorted(self.world.folder.rglob("*")) == before

    @precondition(lambda self: self.open and not self.world.aside.exists())
    @rule(keep_files=st.booleans(), others=st.booleans())
    def is_deleted(self, keep_files: bool, others: bool) -> None:
        self.world.now += LOST
        job, _, _ = self.world.rows()
        there = self.world.folder.is_dir()
        with Store(self.world.url) as record:
            record.delete_job("job", (lambda: None) if keep_files else Files.of(job).remove)
            assert not record.jobs()
        assert self.world.folder.is_dir() == (there and keep_files)
        self.deleted = True

    # ---- what holds

    @property
    def open(self) -> bool:
        """Whether there is a job that has not come to its end."""
        return self.world is not None and not self.deleted and self.world.rows()[0].status != "Completed"

    @invariant()
    def nothing_is_lost(self) -> None:
        if self.world is not None and not self.deleted:
            self.world.check()

    def teardown(self) -> None:
        if self.world is None:
            return
        try:
            if self.open:
                self.world.storage_comes()
                self.world.now += 2 * 3600.0
                ended = self.drive(Disturbance())
                assert isinstance(ended, Ended), ended
            if not self.deleted:
                assert self.world.answer() == self.expected
                self.world.check()
        finally:
            done_with(self.world)


SETTINGS = {"deadline": None, "stateful_step_count": 6, "suppress_health_check": list(HealthCheck)}


@pytest.mark.process
@pytest.mark.parametrize("plan", JobLife.plans)
def test_whatever_befalls_a_job_it_comes_to_its_own_end(plan: int) -> None:
    one = type("JobLifeOfOnePlan", (JobLife,), {"plans": (plan,)})
    run_state_machine_as_test(one, settings=settings(max_examples=100, **SETTINGS))


# ---- what it found


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = world_of(*request.param)
    yield made
    done_with(made)


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
    world.drive(Disturbance(before={0: lambda: world.storage_goes(file=False)}))
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
    world.drive(
        Disturbance(before={1: lambda: world.take_over(Disturbance(before={0: lambda: world.kill(heard=False)}))})
    )
    world.now += LOST
    world.drive(Disturbance())
    world.check()


if __name__ == "__main__":
    run_state_machine_as_test(JobLife, settings=settings(max_examples=int(sys.argv[1]), **SETTINGS))
    sys.stdout.write("nothing found\n")
