"""Supervisor of a background job: its driver in a process of its own, started again after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import psutil

from hpo.jobs.files import DRIVER_LOG
from hpo.jobs.launch.whereabouts import JOB_CONFIG, LOG
from hpo.notices import announce
from hpo.record import ACTS_AS, LONGEST_WAIT, JobRow, Store, acting, actor, is_held
from trainers.errors import ConfigurationError, LeaseError, RecordMissingError, WarmbandError
from trainers.home import home
from trainers.loopback import LOOPBACK_VARIABLE

RESTARTS = 5
"""How often a driver that keeps dying is started again."""

LONG_RUN = 600.0
"""Seconds after which a driver's death is not counted with those before."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before the first start again, doubled each time. At most half of what makes others take the job for lost."""

START_SECONDS = 30.0

LOOK_SECONDS = 0.5

RESUME = "--resume"

ALLOW_CODE = "--allow-code"

LIMITS = "--limits"

_PYTHON = (sys.executable, "-P", "-m")
"""-P: no module is looked for in the working directory, unless this process does."""

_ENDED = ("Completed", "Failed", "Stopped")
_WRONG = 2
"""The exit code of what is wrong however often it is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The next step after a driver's end.

    Args:
        again: seconds until the driver is started again; None where it is not.
        reason: why the job has failed; empty where it has not, or its driver has said so itself.
    """

    again: float | None = None
    reason: str = ""


def judge(status: str, code: int, deaths: int, last_line: str = "") -> Verdict:
    """The next step after a driver's end.

    Args:
        status: the job's, in the record.
        code: the driver's exit code, the negative number of a signal.
        deaths: how often in a row it has ended without being asked to, this time included.
        last_line: the last line that it printed.
    """
    if status in _ENDED:
        return Verdict()
    if code == _WRONG:
        return Verdict(reason=f"its driver refused to run: {last_line.removeprefix('error: ')}")
    if deaths > RESTARTS:
        return Verdict(reason=f"its driver died {deaths} times in a row, the last time {ended(code)}")
    return Verdict(again=min(FIRST_PAUSE * 2 ** (deaths - 1), LONGEST_PAUSE))


def ended(code: int) -> str:
    """How a process ended, in words."""
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"


def log_file(name: str) -> Path:
    """Where the output of a background job's driver goes."""
    return home() / "jobs" / name / DRIVER_LOG


def options(*, resume: bool, allowed: Collection[str], limits: Mapping[str, float] | None = None) -> list[str]:
    """The driver's options on its command line."""
    return [
        *([RESUME] if resume else []),
        *([f"{LIMITS}={json.dumps(dict(limits))}"] if limits else []),
        *(f"{ALLOW_CODE}={code}" for code in sorted(allowed)),
    ]


def start(name: str, store: str | None, given: Sequence[str] = ()) -> int:
    """Starts a job of the record in the background, where it outlives this process, its shell and its terminal.

    Args:
        name: the job's.
        store: database URL of the record; None is the default one. It goes by the environment, as it may hold a
            password and all users see command lines.
        given: options of the driver, as `options` makes them.

    Returns:
        The process that looks after the driver.

    Raises:
        ConfigurationError: the log cannot be written.
        WarmbandError: the process could not be started.
    """
    file = log_file(name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o600)
        with file.open("ab") as log:
            done = subprocess.run(
                [*_PYTHON, "hpo.jobs.launch.supervisor", name, *given],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(store, file),
                start_new_session=True,
                timeout=START_SECONDS,
                check=False,
            )
    except OSError as error:
        raise ConfigurationError(
            f"the log of job {name!r}, {file}, cannot be written: {error.strerror or error}; set WARMBAND_HOME to a "
            "folder that can be written to"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise WarmbandError(f"job {name!r} was not in the background after {START_SECONDS:g} s; see {file}") from error
    if done.returncode != 0:
        raise WarmbandError(f"job {name!r} could not be started in the background: {_last_line(file)}; see {file}")
    return int(done.stdout)


def failure(name: str, pid: int) -> str:
    """Why the background of a job that `start` has started is gone, in its last line; empty where it is there.

    Args:
        name: the job's.
        pid: as `start` returned it.
    """
    try:
        gone = psutil.Process(pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        gone = True
    return _last_line(log_file(name)).removeprefix("error: ") if gone else ""


class Supervisor:
    """Looks after the driver of one job until the job has ended.

    Args:
        name: the job's.
        log: where the driver's output goes.
        given: options of the driver; that it may begin with a job that has ended is for its first start. Limits are
            for each, as one may die before it has taken the job up and raised them.
    """

    def __init__(self, name: str, log: Path, options: Sequence[str]) -> None:
        self._name, self._log, self._given = name, log, list(options)
        self._asked = False

    def run(self) -> None:
        """Starts the driver, and starts it again when it dies, until the job has ended or there is no hope."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        deaths = 0
        while True:
            began = time.monotonic()
            code = self._drive([option for option in self._given if option != RESUME or not deaths])
            deaths = 1 if time.monotonic() - began > LONG_RUN else deaths + 1
            if _patiently(partial(self._over, code, deaths)):
                return

    def _drive(self, options: Sequence[str]) -> int:
        with self._log.open("ab") as log:
            driver = subprocess.Popen(
                [*_PYTHON, "hpo.jobs.driver", self._name, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            told = False
            while True:
                try:
                    return driver.wait(LOOK_SECONDS)
                except subprocess.TimeoutExpired:
                    if self._asked and not told:
                        self._ask_to_stop()
                        told = True

    def _ask_to_stop(self) -> None:
        """By the record: a machine that shuts down has sent the driver its signal already, and the second is harsh."""
        with suppress(WarmbandError), Store() as store, acting(by="", door="signal"):
            store.request_stop(self._name)

    def _over(self, code: int, deaths: int) -> bool:
        """Waits until the driver is to be started again; returns whether it is not."""
        try:
            store = Store(make=False)
        except RecordMissingError:
            return True  # The driver has said so.
        with store:
            job = next((each for each in store.jobs() if each.name == self._name), None)
            if job is None:
                return True  # It was deleted.
            verdict = judge(job.status, code, deaths, _last_line(self._log))
            if verdict.reason:
                self._say(f"{verdict.reason}; given up")
                end(store, job, "Failed", f"{verdict.reason} (log: {self._log}; to go on: hpo resume {self._name})")
            if verdict.again is None:
                announce(store, self._name, self._say)  # Its driver may have died before it came to that.
                return True
            self._say(f"the driver ended {ended(code)}; it is started again in {verdict.again:g} s")
            deadline = time.monotonic() + verdict.again
            while time.monotonic() < deadline and not self._asked:
                time.sleep(0.1)
            job = store.job(self._name)
            if self._asked or job.status == "Stopping":
                end(store, job, "Stopped", "stop requested")
                announce(store, self._name, self._say)
            return self._asked or job.status != "InProgress" or is_held(job)

    def _say(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"supervisor: {text}\n")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._asked = True


def end(store: Store, job: JobRow, status: str, reason: str) -> None:
    """Writes the end of a job that nobody drives.

    Raises:
        LeaseError: somebody does.
    """
    store.update_job(job.name, status=status, reason=reason, ended_at=time.time())


def _environment(store: str | None, log: Path) -> dict[str, str]:
    """The background's: as here, and what this process can import, whose script's folder is not on a child's path."""
    here = os.getcwd()
    path = [sys.path[0] or here, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    if here in sys.path or "" in sys.path:  # As in a notebook, whose kernel does not begin with it.
        path.append(here)
    variables = {"WARMBAND_STORE": store} if store else {}
    # The background is no part of the Ray job that this process may be.
    kept = {name: value for name, value in os.environ.items() if name != JOB_CONFIG}
    # Before the driver imports Ray: it is then kept to this machine, as a driver that runs here is.
    return {
        LOOPBACK_VARIABLE: "0",
        **kept,
        **variables,
        LOG: str(log),
        ACTS_AS: actor().to_text(),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, path))),
    }


def _patiently(call: Callable[[], bool]) -> bool:
    """Calls, and again while the record cannot be reached; gives up as a driver would."""
    deadline = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            return call()
        except LeaseError:
            return True  # Somebody else drives the job now.
        except WarmbandError:
            if time.monotonic() > deadline:
                raise
            time.sleep(5.0)


def _last_line(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def main() -> None:
    """Goes into the background, says under which number, and looks after the driver of the job that it was given."""
    name = sys.argv[1]
    if (child := os.fork()) > 0:
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        os._exit(0)
    os.setsid()
    with open(os.devnull, "rb+", buffering=0) as nowhere:
        os.dup2(nowhere.fileno(), 1)
    Supervisor(name, Path(os.environ[LOG]), sys.argv[2:]).run()


if __name__ == "__main__":
    main()
