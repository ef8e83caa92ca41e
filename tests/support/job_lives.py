"""A job's whole life as a state machine: whatever befalls it, nothing is lost and its answer is the undisturbed one's.

    python -m tests.support.job_lives 20000 0

runs so many sequences, in rounds whose seeds begin at the second number; the test suite runs the same few every time.
Each failure that it found is a plain test in `test_job_life_found.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, Phase, seed, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hpo.jobs.files.folder import FOLDER_ID, check_free, claim
from hpo.jobs.launch.background import end_abandoned
from hpo.jobs.run import Ended
from hpo.record.store import JobRow, Store
from hpo.search.observer import INTERRUPTED
from tests.support import job_doors
from tests.support.drivers import NAMES_OF_OTHERS, Disturbance, KilledError, Moment
from tests.support.job_aims import AIMS, PLANS, aim, fail, undisturbed
from tests.support.job_doors import DeleteBy, StopBy
from tests.support.job_life import LOST, SPEC, World
from tests.support.properties import examples
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError, DataError, LeaseError, ResourcesError

ROUND = 500
"""Sequences of one seed."""

MOMENTS = st.one_of(
    st.tuples(st.integers(0, 30), st.just(0)),
    st.tuples(st.integers(0, 12), st.integers(0, 40)),
    st.tuples(st.just(0), st.integers(10, 110)),  # While what is known is decided again.
)
PLACES = (
    *("", "job", "job/inputs", "job/profiles", "job/untuned", "job/probe", "job/job-000", "job/job-001"),
    *("job/job-002", "job/job-000/000001", "job/job-001/000002", "job/job-000/000004", "job/job-x", "another-job"),
)
"""Folders below `storage_path` whose paths a job computes, and others."""

WRITTEN = st.sampled_from([1, 2, 3, 5, 8])


class JobLife(RuleBasedStateMachine):
    """Drivers come and go; between them the record and the files are looked at."""

    plans = tuple(range(len(PLANS)))
    files_planted = 0
    """Files that somebody else put among the jobs' files, in all lives of this process."""

    def __init__(self) -> None:
        super().__init__()
        self.made: World | None = None
        self.open = False
        """Whether there is a job that has not come to its end."""
        self.deleted = False
        self.losses = 0
        self.more: tuple[int, ...] = ()

    @property
    def world(self) -> World:
        assert self.made is not None
        return self.made

    @initialize(plan=st.integers(0, 5), number=st.integers(0, len(AIMS) - 1), parallel=st.integers(1, 4))
    def begin(self, plan: int, number: int, parallel: int) -> None:
        plan = self.plans[plan % len(self.plans)]
        self.of = plan, number
        self.expected = undisturbed(plan, number)
        self.made = World(aim=aim(plan, number), parallel=parallel)
        self.open = True

    # ---- drivers

    def drive(self, written: int = 2, **disturbance: Any) -> Ended | BaseException:
        """The next driver, once the lease of the one before has expired."""
        self.world.now += LOST
        found = self.world.drive(Disturbance(written_every=written, **disturbance))
        assert not isinstance(found, Ended) or found.status != "Failed", found.reason
        return found

    @property
    def away(self) -> bool:
        """Whether models cannot be read or written now."""
        return self.world.full or self.world.aside.exists()

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS, heard=st.booleans(), written=WRITTEN)
    def is_killed(self, at: Moment, heard: bool, written: int) -> None:
        found = self.drive(written, acts={at: lambda: self.world.kill(heard=heard)})
        assert isinstance(found, KilledError | Ended), found

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS, written=WRITTEN, by=st.sampled_from(get_args(StopBy)))
    def is_stopped(self, at: Moment, written: int, by: StopBy) -> None:
        found = self.drive(written, acts={at: lambda: self.world.stop(partial(job_doors.stop, self.world, by))})
        assert isinstance(found, Ended), found

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS, times=st.integers(1, 2), again=MOMENTS, written=WRITTEN)
    def gets_ctrl_c(self, at: Moment, times: int, again: Moment, written: int) -> None:
        """Once, or twice: at once, or some time later."""
        acts = {at: lambda: self.world.interrupt(1)}
        if times == 2:
            acts[again] = lambda: self.world.interrupt(1 if again != at else 2)
        found = self.drive(written, acts=acts)
        assert isinstance(found, Ended) or (times == 2 and isinstance(found, KeyboardInterrupt)), found
        assert self.world.last is not None
        if self.world.last.asked_at is not None and not self.away:
            assert self.world.rows()[0].reason == INTERRUPTED or (
                isinstance(found, Ended) and found.status != "Stopped"
            )

    @precondition(lambda self: self.open)
    @rule(
        at=MOMENTS,
        how=st.sampled_from(["gone", "a file", "full"]),
        asks=st.integers(1, 40),
        then=st.sampled_from(["", "killed", "Ctrl-C", "stopped"]),
        later=st.integers(0, 20),
    )
    def loses_its_storage(self, at: Moment, how: str, asks: int, then: str, later: int) -> None:
        def go() -> None:
            self.world.comes_back_after = asks
            if how == "full":
                self.world.full = True
            else:
                self.world.storage_goes(file=how == "a file")

        acts: dict[Moment, Callable[[], None]] = {at: go}
        follows = {
            "killed": lambda: self.world.kill(heard=True),
            "Ctrl-C": lambda: self.world.interrupt(2),
            "stopped": self.world.stop,
        }
        if then:
            acts[at[0] + 1, later] = follows[then]
        found = self.drive(acts=acts)
        allowed = {"killed": KilledError, "Ctrl-C": KeyboardInterrupt}.get(then, Ended)
        assert isinstance(found, Ended | allowed), found

    @rule()
    def is_looked_at(self) -> None:
        """The one rule that a job which has ended has left."""

    @precondition(lambda self: self.open)
    @rule()
    def finds_its_storage_again(self) -> None:
        self.world.storage_comes()

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS, events=st.integers(1, 10))
    def loses_its_database(self, at: Moment, events: int) -> None:
        """Before its lease, the driver says so and ends; later on it goes on."""
        self.drive(acts={at: self.world.database_goes, (at[0] + events, 0): self.world.database_comes})

    @precondition(lambda self: self.open and self.losses < 2)
    @rule(at=st.integers(0, 30), spoilt=st.booleans(), acts=st.none() | MOMENTS)
    def loses_workers_or_a_checkpoint(self, at: int, spoilt: bool, acts: Moment | None) -> None:
        """And is killed, perhaps, while that trial trains its rungs again."""
        self.losses += 1
        later = {acts: lambda: self.world.kill(heard=True)} if acts else {}
        found = self.drive(acts=later, **{"spoilt" if spoilt else "losses": frozenset({at})})
        assert isinstance(found, Ended | KilledError), found

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS, seconds=st.sampled_from([-3600.0, 3600.0]))
    def sees_the_clock_jump(self, at: Moment, seconds: float) -> None:
        def jump() -> None:
            self.world.skew += seconds

        self.drive(acts={at: jump, (at[0] + 5, 0): lambda: self.world.interrupt(1)})
        self.world.now += max(0.0, -seconds)

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS, killed_at=MOMENTS)
    def is_taken_over(self, at: Moment, killed_at: Moment) -> None:
        """The one that lost its lease ends, and has written and removed nothing since."""
        taken = []

        def take_over() -> None:
            writer, lease = self.world.driving.writer, self.world.lease()
            self.world.take_over(Disturbance(acts={killed_at: lambda: self.world.kill(heard=False)}))
            taken.append(writer is not None and writer.lease == lease != self.world.lease())

        found = self.drive(acts={at: take_over})
        assert not any(taken) or isinstance(found, LeaseError), found

    @precondition(lambda self: self.open)
    @rule(seconds=st.integers(1, 60))
    def reaches_a_limit_that_is_raised(self, seconds: int) -> None:
        """Neither sooner nor later; who drives it after that goes by the larger one."""
        limit = int(self.world.driven) + seconds
        self.world.now += LOST
        self.world.limit(max_runtime_in_seconds=limit)
        found = self.drive()
        assert isinstance(found, Ended), found
        if found.status == "Stopped":
            if not self.away:
                assert "max_runtime_in_seconds" in found.reason, found.reason
                assert self.world.driven >= limit
            self.world.raise_limit("max_runtime_in_seconds", 10**6)
        else:
            self.world.limit(max_runtime_in_seconds=10**6)  # Of a job that has more trials later on.

    @precondition(lambda self: self.can_be_longer)
    @rule(more=st.sampled_from([1, 4]))
    def has_its_trials_raised(self, more: int) -> None:
        """Stopped at a limit, killed, or complete with all its trials."""
        self.world.now += LOST
        self.world.raise_limit("max_jobs", self.world.max_jobs + more)
        self.more = (*self.more, more)
        self.expected = undisturbed(*self.of, self.more)

    @precondition(lambda self: self.open)
    @rule()
    def is_resumed_without_a_head(self) -> None:
        found = self.drive(no_head=True)
        assert isinstance(found, ResourcesError | Ended), found

    @precondition(lambda self: self.open)
    @rule(at=MOMENTS)
    def is_resumed_too_early(self, at: Moment) -> None:
        """A driver died on another machine: nobody else drives before its lease has expired."""
        before = self.world.lease()
        self.drive(acts={at: lambda: self.world.kill(heard=True)})
        job, _, _ = self.world.rows()
        if job.status != "Completed":  # Of which no driver is made.
            found = self.world.drive(Disturbance())
            assert isinstance(found, LeaseError) == (job.lease not in ("", before)), found

    @precondition(lambda self: self.open)
    @rule()
    def is_stopped_when_its_driver_is_dead(self) -> None:
        self.world.now += LOST
        with Store(self.world.url) as record:
            lost = record.job("job").lost
            assert end_abandoned(record, "job") == lost

    # ---- others

    @precondition(lambda self: not self.away)
    @rule(
        place=st.sampled_from(PLACES),
        name=st.sampled_from(NAMES_OF_OTHERS).map(lambda name: f"{name}/000001" if name == "mine" else name),
    )
    def gets_a_file_of_somebody_else(self, place: str, name: str) -> None:
        self.world.plant(place, name)

    @precondition(lambda self: self.open and self.world.folder.is_dir() and any(self.world.folder.iterdir()))
    @rule()
    def meets_a_job_of_its_name(self) -> None:
        folder, before = str(self.world.folder), sorted(self.world.folder.rglob("*"))
        other = JobRow(name="job", created_at=0.0, spec={**SPEC, FOLDER_ID: "another's"})
        with refuses(ConfigurationError, field=folder, value="job", remedy=("job_name", "storage_path")):
            check_free(folder, "job")
        with refuses(ConfigurationError, field=folder, value="job", remedy=("job_name", "storage_path")):
            claim(folder, other, begun=False)
        assert sorted(self.world.folder.rglob("*")) == before

    @precondition(lambda self: self.open)
    @rule()
    def cannot_be_deleted(self) -> None:
        """Check that a job whose files cannot be removed stays in the record."""
        self.world.now += LOST
        with Store(self.world.url) as record, pytest.raises(DataError):
            record.delete_job("job", fail)

    @precondition(lambda self: self.open and not self.world.aside.exists())
    @rule(keep_files=st.booleans(), by=st.sampled_from(get_args(DeleteBy)))
    def is_deleted(self, keep_files: bool, by: DeleteBy) -> None:
        self.world.now += LOST
        before = sorted(self.world.folder.rglob("*"))
        keep_files = keep_files or by == "SageMaker"
        job_doors.delete(self.world, by, keep_files=keep_files)
        with Store(self.world.url) as record:
            assert not record.jobs()
        left = sorted(path for path in self.world.folder.rglob("*") if not path.is_dir())
        mine = sorted(path for path in self.world.planted if self.world.folder in path.parents)
        assert (sorted(self.world.folder.rglob("*")) == before) if keep_files else (left == mine)
        assert left or keep_files or not list(self.world.folder.glob("*"))
        self.world.check_planted()
        self.open = False
        self.deleted = True

    # ---- what holds

    @property
    def can_be_longer(self) -> bool:
        """Whether more trials can be asked for: not of a job that has found enough."""
        if self.made is None or self.deleted or len(self.more) > 1 or self.made.aim.population:
            return False
        job, _, _ = self.world.rows()
        return job.status != "Completed" or not job.reason

    @invariant()
    def nothing_is_lost(self) -> None:
        if self.made is not None and not self.deleted:
            self.open = self.world.check().status != "Completed"

    def teardown(self) -> None:
        if self.made is None:
            return
        try:
            type(self).files_planted += len(self.world.planted)
            if self.open:
                self.world.storage_comes()
                self.world.now += 2 * 3600.0
                ended = self.drive()
                assert isinstance(ended, Ended), ended
            if not self.deleted:
                assert self.world.answer() == self.expected
                self.world.check()
        finally:
            self.world.close()


SETTINGS: dict[str, Any] = {
    "database": None,
    "deadline": None,
    "phases": [Phase.generate],  # What a failure prints is short enough; to make it shorter takes minutes.
    "report_multiple_bugs": False,
    "stateful_step_count": 6,
    "suppress_health_check": list(HealthCheck),
}


def live(plan: int, many: int) -> None:
    """Run so many lives of jobs with one plan."""
    one = seed(plan)(type("JobLifeOfOnePlan", (JobLife,), {"plans": (plan,)}))
    run_state_machine_as_test(one, settings=settings(max_examples=examples(many), **SETTINGS))


if __name__ == "__main__":
    number, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    planted = 0
    for start in range(0, number, ROUND):
        many = min(ROUND, number - start)
        kind = type("JobLifeOfOneSeed", (JobLife,), {})
        one = seed(first + start // ROUND)(kind)
        run_state_machine_as_test(one, settings=settings(max_examples=examples(many), **SETTINGS))
        planted += kind.files_planted
        sys.stdout.write(
            f"{start + many} sequences, seeds {first} to {first + start // ROUND}: nothing found; {planted} files "
            "of somebody else were put among the jobs' files, and are all there\n"
        )
        sys.stdout.flush()
