"""A job apart from the process that asks for it: on a Ray cluster if there is one, else on this machine."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import sqlalchemy as sa

from hpo.jobs.files import Files, claim, was_claimed
from hpo.jobs.launch import supervisor
from hpo.jobs.launch.ray_jobs import ADDRESS_VARIABLES, JobsServer
from hpo.notices import announce_apart
from hpo.record import ACTS_AS, JobRow, Store, actor, is_away, is_dead, tags_of, this_process
from trainers import storage
from trainers.errors import ConfigurationError, LeaseError, WarmbandError
from trainers.trainer import Trainer

START_SECONDS = 60.0
"""How long a driver may take to take its job."""

_LOOK_EVERY = 0.2
_UNDER_WAY = ("InProgress", "Stopping")


def check_can_follow(named: Mapping[str, str], callbacks: Sequence[object]) -> None:
    """Refuses what another process cannot make again out of the record: callbacks, functions of a script.

    Args:
        named: the user's own code that the job runs, as `JobSettings.code` has it.
        callbacks: those of the job.

    Raises:
        ConfigurationError: naming it.
    """
    if callbacks:
        kinds = ", ".join(type(callback).__name__ for callback in callbacks)
        raise ConfigurationError(
            f"callbacks {kinds} cannot follow a job to another process, as fit(wait=False) needs; call fit(wait=True) "
            "or leave them out"
        )
    for argument, code in named.items():
        module, _, name = code.partition(":")
        if module == "__main__" or "<" in name:
            plain = name.rpartition(".")[2].strip("<>")
            where = "this script or notebook" if module == "__main__" else "another function"
            raise ConfigurationError(
                f"{argument} {plain!r} is in {where}, where the other process of fit(wait=False) does not find it; put "
                f"it into a module, say training.py, as 'training:{plain}', or call fit(wait=True)"
            )


def cluster_for(estimator: Trainer) -> JobsServer | None:
    """The cluster whose Jobs API a trainer's job goes to: the one that Ray's variables name, or an open session is on.

    Returns:
        None where there is none that outlives this process, or the job needs none: it then runs on this machine.

    Raises:
        ConfigurationError: there is one, and its jobs server cannot be reached.
    """
    if estimator.in_hand:
        return None
    if any(os.environ.get(name) for name in ADDRESS_VARIABLES):
        return JobsServer()
    import ray

    if not ray.is_initialized() or _started_here():
        return None
    return JobsServer(ray.get_runtime_context().gcs_address)


def start(
    name: str,
    store: str | None,
    server: JobsServer | None,
    *,
    resume: bool = False,
    allowed: Collection[str] = (),
    limits: Mapping[str, float] | None = None,
) -> str:
    """Starts the driver of a job of the record, and returns once it has taken the job.

    Args:
        name: the job's.
        store: database URL of the record; None is the default one.
        server: the cluster it runs on; None is this machine.
        resume: also where the job has ended as Stopped or Failed.
        allowed: the code that the driver may import, each as "module:name".
        limits: larger ones that it is resumed under, by name.

    Returns:
        Where it runs, in words.

    Raises:
        ConfigurationError: the driver could not reach the record from there, or refuses to run.
        WarmbandError: it does not start.
    """
    arguments = supervisor.options(resume=resume, allowed=allowed, limits=limits)
    with Store(store) as opened:
        before = opened.job(name)
        try:
            if server is None:
                _claim_log_folder(before)
                pid = supervisor.start(name, store, arguments)
                where = f"in the background, as process {pid}; its log is {supervisor.log_file(name)}"
                failed = partial(supervisor.failure, name, pid)
            else:
                submission = _submitted(before, opened, server, arguments, resume=resume, allowed=allowed)
                where, failed = f"as Ray job {submission} on {server.address}", partial(server.failure, submission)
        except WarmbandError:
            if not resume:  # Nothing was run: the name is free again.
                opened.delete_job(name, Files.of(before).remove, why="it could not be started")
            raise
        begun = _wait_until_driven(opened, before, failed)
    return where if begun else f"{where}; it has not begun after {START_SECONDS:g} s"


def _claim_log_folder(job: JobRow) -> None:
    """Marks the folder of the driver's log as the job's; it is the folder of its models, where nobody named another.

    Raises:
        ConfigurationError, StorageError: see `claim`.
    """
    folder = str(supervisor.log_file(job.name).parent)
    models = storage.join(job.spec["storage_path"], job.name)
    claim(folder, job, begun=folder == models and was_claimed(job), logs=True)


def start_apart(
    name: str, store: str | None, server: JobsServer | None, say: Callable[[str], None], **options: Any
) -> None:
    """Starts the driver of a job, and says where it runs and how to look; as `start`.

    Args:
        name: the job's.
        store: database URL of the record; None is the default one.
        server: the cluster it runs on; None is this machine.
        say: prints a line.
        **options: `resume`, `allowed` and `limits` of `start`.
    """
    say(f"{name} runs {start(name, store, server, **options)}")
    say(f"Look with: hpo logs {name} --follow, hpo describe {name}; stop with: hpo stop {name}")


def _submitted(
    job: JobRow, store: Store, server: JobsServer, options: Sequence[str], *, resume: bool, allowed: Collection[str]
) -> str:
    """Hands a job's driver to a cluster; returns Ray's name for it, of which it takes each once."""
    return server.submit(
        job.name,
        ["python", "-m", "hpo.jobs.driver", job.name, *options],
        working_dir=_working_dir(allowed),
        environment=_reaching(store, server),
        tags=tags_of(job.spec.get("tags")),
        submission_id=f"{job.name}-{secrets.token_hex(3)}" if resume else job.name,
    )


def _wait_until_driven(store: Store, before: JobRow, failed: Callable[[], str]) -> bool:
    """Returns whether a driver has taken a job, and raises where it has failed instead."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            job = store.job(before.name)
        except WarmbandError as error:
            if not is_away(error):
                raise
            if reason := failed():
                raise ConfigurationError(f"job {before.name!r} did not start: {reason}") from error
            time.sleep(_LOOK_EVERY)
            continue
        again = job.status in _UNDER_WAY or job.ended_at != before.ended_at
        if job.heartbeat != before.heartbeat and again:
            return True
        if job.status == "Failed" and job.ended_at != before.ended_at:
            raise ConfigurationError(f"job {job.name!r} did not start: {job.reason}")
        if reason := failed():
            with suppress(WarmbandError):  # The record may be the reason: that is what is to be said.
                if job.status in _UNDER_WAY:
                    store.update_job(job.name, status="Failed", reason=reason, ended_at=time.time())
                    announce_apart(store, job.name)
            raise ConfigurationError(f"job {job.name!r} did not start: {reason}")
        time.sleep(_LOOK_EVERY)
    return False


def _reaching(store: Store, server: JobsServer) -> dict[str, str]:
    """Variables by which a driver on the cluster knows who started it, and finds the record, if it has no secret.

    Raises:
        ConfigurationError: the record is a file that no other machine reads.
    """
    acts = {ACTS_AS: actor().to_text()}
    if store.has_secret:
        return acts  # Ray would show it: the nodes have to have it themselves.
    url = sa.make_url(store.url)
    if url.get_backend_name() == "sqlite":
        if not _is_here(server.address):
            raise ConfigurationError(
                f"the record is the file {url.database} of this machine, and the driver runs on {server.address}, "
                "which cannot write to it; name a PostgreSQL database in WARMBAND_STORE, here and on the cluster's "
                "nodes"
            )
        url = url.set(database=os.path.abspath(str(url.database)))
    return {**acts, "WARMBAND_STORE": url.render_as_string()}


def _is_here(address: str) -> bool:
    """Whether a server's host is this machine, as far as its name tells."""
    host = urlsplit(address).hostname or ""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(str(each).startswith("127.") or each == "::1" for each in addresses) or this_process()["ip"] in addresses


def _working_dir(allowed: Collection[str]) -> Path | None:
    """The working directory, where code that the job runs is in it; it then has to go along."""
    here = Path.cwd()
    for code in allowed:
        spec = find_spec(code.partition(":")[0])
        if spec is not None and spec.origin and here in Path(spec.origin).resolve().parents:
            return here
    return None


def _started_here() -> bool:
    """Whether this process started the Ray session that is open in it, which then ends with it.

    Ray does not tell. Its head's server is a child of the process that started it.
    """
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # It has ended meanwhile.
            if child.name().startswith("gcs_server"):
                return True
    return False


def end_abandoned(store: Store, name: str) -> bool:
    """Ends a job as Stopped whose driver has died, since nobody else is there to do it.

    Returns:
        Whether it was such a job.
    """
    job = store.job(name)
    if job.status not in _UNDER_WAY:
        announce_apart(store, name)  # Its driver may have died before it came to that.
        return False
    dead = job.lost or bool(job.lease and is_dead(job.driver))
    if not dead:
        return False
    # By a writer, whose lease ends a driver that was only cut off.
    try:
        with store.writer(name, job.driver) as writer, writer.at_once():
            writer.job(status="Stopped", reason="stopped after its driver had died", ended_at=job.heard)
            writer.act("stopped", {})
    except LeaseError:
        return False
    announce_apart(store, name)
    return True
