"""Drivers that freeze, die, or run out of disk, on a real head with a second node and a real PostgreSQL as the record.

Each job ends with the answer of one that nothing happened to, and leaves nothing behind. All in one module, for all of
it stands on one cluster.
"""

from __future__ import annotations

import errno
import getpass
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hpo.jobs.files.folder import MARK
from hpo.record.store import Store
from hpo.record.tables import LOST_AFTER
from tests.support.cluster.commands import CommandedJob, driver_of, kill, left, until_left
from tests.support.cluster.jobs import END_SECONDS, STANDING, WORKER, Answer
from tests.support.cluster.machine import Machine, possible
from tests.support.cluster.ray_machines import RayMachines, executable, until
from tests.support.postgres import Postgres
from tests.support.refusals import mentions, refuses
from tests.support.rows import silence
from trainers.errors import ConfigurationError
from trainers.patient_storage import BACK

pytestmark = pytest.mark.fault

RUNG = 3
"""After so many epochs a trial has six more to its next rung."""

CLEAN_SECONDS = 120.0
WAITED_SECONDS = 10.0
TAKEOVER_SECONDS = LOST_AFTER + 90.0
"""A driver that is silent holds its job for a minute; the rest is for busy cores."""

OF_RAY = ("_AutoscalingCoordinatorActor", "ray::_AutoscalingCoordinatorActor")
"""What Ray Train makes for a cluster's first run, and leaves for all that follow."""

OF_TORCH = (f"torchinductor_{getpass.getuser()}",)
"""What PyTorch makes on a machine for its first process, and leaves for all that follow."""


class Disk:
    """A disk of 2 MiB of its own that fills up, whatever is removed from it, until it is freed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wb-disk-"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", self.folder], check=True, timeout=30)
        self._filler = self.folder / "filler"
        self._full = threading.Event()
        self._thread: threading.Thread | None = None

    def fill(self) -> None:
        """Lets nothing be written there from now on."""
        self._full.set()
        self._write()
        self._thread = threading.Thread(target=self._keep_full, daemon=True)
        self._thread.start()

    def free(self) -> None:
        """Makes room."""
        if self._thread is not None:
            self._full.clear()
            self._thread.join()
            self._thread = None
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        """Takes it away."""
        self.free()
        subprocess.run(["umount", "--lazy", self.folder], check=True, timeout=30)
        self.folder.rmdir()

    def _keep_full(self) -> None:
        while self._full.is_set():
            self._write()
            threading.Event().wait(0.02)

    def _write(self) -> None:
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass


@pytest.fixture(scope="module")
def disk() -> Iterator[Disk]:
    """Mounted before there is any machine: what is mounted later, those that are there do not see."""
    if not possible():
        pytest.skip("needs machines of namespaces, and root's rights to make them")
    made = Disk()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def record(postgres: Postgres) -> Iterator[str]:
    """A database that machines reach by the server's socket: their network has no way here."""
    url = postgres.new_database()
    yield postgres.by_socket(url)
    postgres.drop(url)


@pytest.fixture(scope="module")
def cluster(disk: Disk, record: str) -> Iterator[RayMachines]:
    """A head with its dashboard, and a second node."""
    environment = {"WARMBAND_STORE": record, "PATH": f"{Path(executable('hpo')).parent}:{os.environ['PATH']}"}
    with RayMachines(dashboard=True, cpus=8, environment=environment) as made:
        made.add(8)
        yield made


@pytest.fixture(scope="module")
def untouched(cluster: RayMachines) -> dict[str, Any]:
    """What is on the cluster before there was any job."""
    return left(cluster)


@pytest.fixture
def leaves_nothing(cluster: RayMachines, untouched: dict[str, Any]) -> Iterator[None]:
    """Whatever the test does, nothing of it is there afterwards."""
    yield
    until_left(cluster, untouched, CLEAN_SECONDS, beside=OF_RAY + OF_TORCH)


@pytest.fixture
def begun(cluster: RayMachines, record: str, leaves_nothing: None) -> Iterator[Callable[..., CommandedJob]]:
    """Makes jobs, whose drivers do not outlive the test, however it ends."""
    jobs: list[CommandedJob] = []

    def make(name: str, **options: Any) -> CommandedJob:
        jobs.append(CommandedJob(cluster, record, name, slow=STANDING, slow_after=RUNG, **options))
        return jobs[-1]

    yield make
    for job in jobs:
        job.end()


def second(cluster: RayMachines) -> Machine:
    return cluster.machines[1]


def test_a_job_is_taken_over_from_a_driver_that_froze_and_one_that_runs_is_not_deleted(
    cluster: RayMachines, record: str, begun: Callable[..., CommandedJob], expected: Callable[..., Answer]
) -> None:
    """Two jobs of drivers on the head: one is taken over while its driver stands still, one is deleted then."""
    elsewhere = second(cluster)
    taken = begun("taken")
    lost = begun("lost", sizes=(1,))
    first = {job.name: job.tune(cluster.head) for job in (taken, lost)}
    for job in (taken, lost):
        job.until_epoch(RUNG, driver=first[job.name])

    # While they run, nobody else drives or deletes them.
    until(lambda: not lost.replaced(), "what the last rung replaced to be removed", END_SECONDS)
    held = lost.rows()["trials"], lost.files()
    code, said = lost.hpo("delete", "lost", "--yes", on=elsewhere)
    assert code == 2, said
    mentions(said, "lost", "InProgress", "hpo stop lost")
    refused = taken.resume(elsewhere)
    assert refused.end() != 0
    mentions(refused.said, "taken", "machine1", "hpo stop taken")
    assert (lost.rows()["trials"], lost.files()) == held
    assert all(driver.runs for driver in first.values())

    # They stand still; their gangs end what they were told, and wait.
    for driver in first.values():
        driver.signal(signal.SIGSTOP)
    stood_still = time.monotonic()
    pass_most_of_a_minute(record)
    resumed = taken.resume(elsewhere)
    for job in (taken, lost):
        job.slow(None)
    resumed.until_said(TAKEOVER_SECONDS, "trials", "ended")
    assert resumed.end() == 0, resumed.said
    assert taken.answer() == expected(trainer="torch")
    until(lambda: is_lost(lost), "the other driver to be taken for dead", TAKEOVER_SECONDS)
    code, said = lost.hpo("delete", "lost", "--yes", on=elsewhere)
    assert code == 0, said
    assert not lost.models.exists()

    # They go on, and find that they have nothing to drive any more: by their own clock, too, a minute has passed.
    until(lambda: time.monotonic() > stood_still + LOST_AFTER + 1.0, "their minute to pass", TAKEOVER_SECONDS)
    before = taken.rows(), taken.files(), taken.trained(), lost.trained()
    for driver in first.values():
        driver.signal(signal.SIGCONT)
    for name, why in (("taken", elsewhere.name), ("lost", "deleted")):
        assert first[name].end() != 0
        mentions(first[name].said, name, why, f"{LOST_AFTER:g} s")
    assert (taken.rows(), taken.files(), taken.trained(), lost.trained()) == before
    assert not lost.models.exists()
    assert not taken.strays()
    with Store(record) as store, refuses(ConfigurationError, field="job", value="lost"):
        store.job("lost")


def pass_most_of_a_minute(record: str) -> None:
    """Most of it has passed since drivers were heard of, as the record sees it; the rest is waited for."""
    with Store(record) as store:
        silence(store, LOST_AFTER - WAITED_SECONDS)


def is_lost(job: CommandedJob) -> bool:
    with Store(job.store) as store:
        return store.job(job.name).lost


def test_a_submitted_job_of_gangs_of_several_sizes_whose_workers_and_driver_are_killed(
    cluster: RayMachines, record: str, begun: Callable[..., CommandedJob], expected: Callable[..., Answer]
) -> None:
    sizes = (1, 2)
    undisturbed = expected(trainer="torch", sizes=sizes)
    assert {line[2] for line in undisturbed.epochs} == {"1", "2"}, "both sizes of gangs are to be tried"
    job = begun("submitted", sizes=sizes)
    said = job.submit(second(cluster))
    mentions(said, "submitted", cluster.head.address)
    job.until_epoch(RUNG)
    seen = len(job.trained())
    kill([job.serving()])
    until(lambda: job.attempts(), "the loss of a worker to be noticed", END_SECONDS)
    job.until_epoch(RUNG, seen)
    kill(driver_of(cluster.head, job.name))
    pass_most_of_a_minute(record)
    until(lambda: is_lost(job), "the driver to be taken for dead", TAKEOVER_SECONDS)
    code, said = job.hpo("describe", job.name, on=second(cluster))
    assert code == 0, said
    mentions(said, "InProgress", "hpo resume submitted")

    # Ray's own command goes on with it, and its driver is killed, too.
    seen = len(job.trained())
    job.submit_resume(second(cluster))
    job.until_epoch(RUNG, seen)
    kill(driver_of(cluster.head, job.name, "hpo resume"))
    pass_most_of_a_minute(record)
    resumed = job.resume(cluster.head)
    resumed.until_said(TAKEOVER_SECONDS, "trials", "ended")
    job.until_epoch(RUNG, len(job.trained()), resumed)
    before = job.attempts()
    kill(job.workers())
    job.slow(None)
    assert resumed.end() == 0, resumed.said
    assert job.answer() == undisturbed
    assert job.attempts() > before
    assert not job.strays()


def test_a_full_disk_is_waited_for_or_stops_the_job_which_goes_on_when_there_is_room(
    cluster: RayMachines, disk: Disk, begun: Callable[..., CommandedJob], expected: Callable[..., Answer]
) -> None:
    """The disk of its models first, then that of each machine: of Ray's sockets and logs, and of temporary files."""
    job = begun("full", storage_path=disk.folder)
    driver = job.tune(second(cluster))
    job.until_epoch(RUNG, driver=driver)
    assert MARK in job.files(), "its folder says whose it is"
    used = {machine.name for machine in cluster.machines if machine.processes(WORKER)}
    assert len(used) == 1, f"a gang that fits on one machine was put on {used}"
    disk.fill()
    job.slow(0.0)
    driver.until_said(END_SECONDS, "storage", os.strerror(errno.ENOSPC))
    mentions(driver.said, str(disk.folder), "disk")
    seen = len(job.trained())
    job.slow(STANDING)
    disk.free()
    driver.until_said(END_SECONDS, BACK)
    job.until_epoch(RUNG, seen, driver)

    disk.fill()
    job.give_up_after(2.0)
    job.slow(None)
    assert driver.end() == 0, driver.said
    status, reason = job.status()
    assert status == "Stopped", reason
    mentions(reason, str(disk.folder), os.strerror(errno.ENOSPC), "disk")
    disk.free()
    job.give_up_after(600.0)

    # It goes on from another machine, until their own disks are full.
    seen = len(job.trained())
    job.slow(STANDING)
    driver = job.resume(cluster.head)
    job.until_epoch(RUNG, seen, driver)
    for machine in cluster.machines:
        machine.fill()
    try:
        job.use_scratch()
        job.slow(None)
        assert driver.end() == 0, driver.said
        status, reason = job.status()
        assert (status, os.strerror(errno.ENOSPC) in reason) == ("Stopped", True), reason
        assert not any(trial.status == "Failed" for trial in job.rows()["trials"]), "no trial's fault"
    finally:
        for machine in cluster.machines:
            machine.free()
    resumed = job.resume(second(cluster))
    assert resumed.end() == 0, resumed.said
    assert job.answer() == expected(trainer="torch")
    assert not job.strays()
