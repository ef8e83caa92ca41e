"""The Ray session of a job: an existing cluster, or a private one that ends with the job."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import ray

from trainers import loopback
from trainers.cluster import head
from trainers.cluster.reach import Reach
from trainers.deletion import delete_file
from trainers.errors import ResourcesError
from trainers.process import whole

logger = logging.getLogger(__name__)

_OPEN = (
    "Ray was imported before Warmband, so it listens on all addresses of this machine, for who has its token; "
    f"import hpo or trainers first, or set {loopback.LOOPBACK_VARIABLE}=0, to keep it to {loopback.ADDRESS}"
)

STARTS = 3
"""How often a Ray that does not come up in its time is started."""

_HOME = str(Path(ray.__file__).parent)
"""In the command line of each of Ray's processes; other threads may start others meanwhile."""

_LATE = "timed out during startup"
"""In what Ray 2.60 raises then, a bare `Exception` (ray/_private/node.py)."""

_PRIVATE = {
    "RAY_worker_niceness": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
}
"""Ray's own switches for a Ray that is started for one job; its processes read them as they start (Ray 2.60).

Ray starts its workers at a niceness of 15, so that its own processes come first. Beside any other work on a core that
is a thirtieth of it (Linux weighs 15 as 36 and 0 as 1024, `sched_prio_to_weight`): they get this process's priority.

Ray starts workers ahead of need, up to one a CPU, with the node or with its first driver, which waits for them. No gang
trains in these: Ray Train gives its workers variables of their own, and so processes of their own.
"""


@dataclass(slots=True)
class Cluster:
    """The cluster that a job runs on.

    Args:
        private: it was started for the job, and ends with all that runs on it.
        reach: what workers have to see of the driver's machine, on each of its nodes.
        runtime_env: Ray's environment for workers of gangs.
        left: threads of this process that call Ray, and were waited for in vain.
    """

    private: bool
    reach: Reach = Reach()  # noqa: RUF009  # It is frozen.
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    left: list[Thread] = field(default_factory=list)


@contextmanager
def cluster(cpus: int, notify: Callable[[str], None] = logger.info, *, verbose: bool = False) -> Iterator[Cluster]:
    """Runs a block on a Ray cluster.

    A session of Ray's that is open in this process is used and left open. Otherwise the cluster that `RAY_ADDRESS`
    names is joined and left. Otherwise Ray is started here, with at least `cpus` logical CPUs so that a laptop holds
    what was asked for, and ended behind the block. A cluster that merely runs on this machine is not joined: it may be
    another job's own, and end with it.

    A cluster that is started asks for a token, unless `RAY_AUTH_MODE` says otherwise, and listens on 127.0.0.1, where
    Ray was not imported before Warmband: see `trainers.loopback`.

    Ctrl-C never comes between: it is `KeyboardInterrupt` in the block, or behind it when Ray has ended. Ray is left to
    the end of this process where a thread still calls it, as Ray that is shut down under one ends the process at once.

    Args:
        cpus: logical CPUs that the job could use at once.
        notify: is told what was started, and when the cluster that was joined does not answer any more.
        verbose: show Ray's own logs and what workers print; else its errors alone.

    Raises:
        ConfigurationError: the cluster cannot be joined.
        GangError: the block's error came of the cluster that was joined, which is gone.
        ResourcesError: the machine is too busy for Ray to start.
    """
    if ray.is_initialized():
        yield Cluster(private=False)
        return
    session = Cluster(private=not os.environ.get("RAY_ADDRESS"))
    shown: dict[str, Any] = {
        "logging_level": logging.INFO if verbose else logging.ERROR,
        "log_to_driver": verbose,
    }
    try:
        if session.private:
            cores = os.cpu_count() or 1
            with whole() as interrupted, _private_settings():
                _keep_token_private()
                # The dashboard costs seconds of start-up; who wants it runs `ray start --head` and sets RAY_ADDRESS.
                start = partial(ray.init, address="local", num_cpus=max(cpus, cores), include_dashboard=False, **shown)
                started(start, notify, interrupted)
            notify(f"Started Ray on this machine: {max(cpus, cores)} logical CPUs on {cores} cores")
            if ray.util.get_node_ip_address() != loopback.ADDRESS and loopback.LOOPBACK_VARIABLE not in os.environ:
                notify(_OPEN)
            yield session
        else:
            head.join(os.environ["RAY_ADDRESS"], **shown)
            with head.watched(notify):
                yield session
    finally:
        with whole():
            if names := [thread.name for thread in session.left if thread.is_alive()]:
                notify(f"warning: Ray ends with this process, not before it: still running are {', '.join(names)}")
            else:
                ray.shutdown()


def started(start: Callable[[], object], notify: Callable[[str], None], interrupted: Callable[[], bool]) -> None:
    """Starts Ray; again where it took longer than Ray waits for its own processes, as on a busy machine.

    Args:
        start: starts it once.
        notify: is told of another start.
        interrupted: whether nobody wants it any more.

    Raises:
        ResourcesError: it did not start.
    """
    for left in reversed(range(STARTS)):
        before = set(psutil.Process().children())
        try:
            start()
            return
        except Exception as error:
            if _LATE not in str(error):
                raise
            for process in set(psutil.Process().children()) - before:
                with suppress(psutil.Error):  # It may have ended.
                    if any(_HOME in part for part in process.cmdline()):
                        process.kill()  # Ray leaves them to the end of this process.
            ray.shutdown()
            if not left or interrupted():
                raise ResourcesError(
                    "Ray did not start on this machine: its processes took longer than the 30 s that it waits for them "
                    f"in {STARTS - left} of {STARTS} tries; the machine is too busy, or short of memory: end other "
                    "work, or set num_workers=0 to train in this process, without Ray"
                ) from error
            notify("Ray's processes took longer than the 30 s that it waits for them: the machine is busy; once more")


@contextmanager
def _private_settings() -> Iterator[None]:
    """Gives a Ray that is started in the block the settings of a private one; who sets a variable decides it."""
    unset = _PRIVATE.keys() - os.environ.keys()
    os.environ.update({name: _PRIVATE[name] for name in unset})
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]


def _keep_token_private() -> None:
    """Makes Ray's token before Ray does, which would let everybody on the machine read it, or takes that back."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    token = Path.home() / ".ray" / "auth_token"
    with suppress(OSError):  # Not our home, or no place to write: Ray says what it needs.
        token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not token.exists():
            draft = token.with_name(f".auth_token.{os.getpid()}")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):  # Another process was faster.
                os.link(draft, token)
            delete_file(draft)
        if token.stat().st_mode & 0o077:
            token.chmod(0o600)
