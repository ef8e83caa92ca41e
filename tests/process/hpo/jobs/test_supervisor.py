"""Jobs in the background of this machine: what comes after a driver's end, and real processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli import app
from hpo.jobs.launch.supervisor import failure, log_file
from hpo.record.lease import is_dead, is_held
from hpo.record.store import JobRow, Store
from hpo.search.observer import STOP_REQUESTED
from tests.support.refusals import mentions, missing_names, refuses
from trainers.errors import NoJobError

ROOT = Path(__file__).resolve().parents[4]

SCRIPT = """
    import time
    from tests.support.background import begin

    begin()
    print("returned", flush=True)
    time.sleep(600)
"""


SECONDS = 240.0


def hpo(*arguments: str) -> str:
    """What a command prints."""
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, arguments)
    assert result.exception is None, result.exception
    return result.stdout


def until(what: str, found: Callable[[], object], seconds: float = SECONDS) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{log_file('background').read_text()}"
        time.sleep(0.1)


def test_why_a_background_is_gone_is_told_from_when_it_has_ended(home: Path) -> None:
    log_file("job").parent.mkdir(parents=True, exist_ok=True)
    log_file("job").write_text("begun\nerror: no room\n")
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        assert process.stdin
        assert failure("job", process.pid) == ""
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert failure("job", process.pid) == "no room", "it has ended, and nobody has collected it"
    assert failure("job", process.pid) == "no room"


def job() -> JobRow:
    with Store() as store:
        return store.job("background")


def trials() -> int:
    with Store() as store:
        return len(store.trials("background"))


@pytest.fixture
def stopped_behind(home: Path) -> Iterator[None]:
    """Stops the background job that a test has left."""
    yield
    with Store() as store:
        if any(each.name == "background" for each in store.jobs()):
            store.request_stop("background")
            until("its end", lambda: not is_held(store.job("background")))


@pytest.fixture
def script(stopped_behind: None) -> Iterator[subprocess.Popen[str]]:
    """A script that has started a background job, and would go on."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_ADDRESS")}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            said = []
            while (line := process.stdout.readline()) and line != "returned\n":
                said.append(line)
            assert line == "returned\n", "".join(said)
            yield process
        finally:
            process.kill()


@pytest.mark.fault
def test_a_background_job_outlives_its_script_and_its_driver_and_is_resumed_when_all_are_killed(
    script: subprocess.Popen[str],
) -> None:
    os.killpg(script.pid, signal.SIGKILL)  # As a shell that goes does, with all of its session.
    script.wait()
    until("its first trials", lambda: trials() > 5)
    first = job().driver
    assert first["log"] == str(log_file("background"))
    assert (os.getsid(first["pid"]), os.getpgid(first["pid"])) != (script.pid, script.pid)
    command = Path(f"/proc/{first['pid']}/cmdline").read_text()
    assert "sqlite" not in command
    assert "background" in command

    kill_with_its_parent(first["pid"])
    until("the driver's death", lambda: is_dead(job().driver))
    assert job().status == "InProgress"
    # Nobody is left who could end it, but the command.
    mentions(hpo("stop", "background"), "background", "Stopped")
    tuner = HyperparameterTuner.attach("background")
    before = trials()
    tuner.resume(wait=False)
    until("more trials", lambda: trials() > before)

    follower = subprocess.Popen(
        [sys.executable, "-m", "hpo", "logs", "background", "--follow"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    second = job().driver
    os.kill(second["pid"], signal.SIGKILL)
    until("another driver", lambda: job().driver["pid"] != second["pid"])
    assert is_dead(second)
    assert job().status == "InProgress"
    before = trials()
    until("more trials", lambda: trials() > before)

    tuner.stop_tuning_job()
    tuner.wait()
    described = tuner.describe()
    assert described["HyperParameterTuningJobStatus"] == "Stopped"
    assert described["FailureReason"] == STOP_REQUESTED
    assert "BestTrainingJob" in described
    printed, _ = follower.communicate(timeout=SECONDS)
    assert any(not missing_names(line, "supervisor", "SIGKILL", "1 s") for line in printed.splitlines()), printed
    assert "background: Stopped" in printed
    assert hpo("logs", "background", "--tail", "1") == printed.splitlines(keepends=True)[-1]

    folder = log_file("background").parent
    assert any(folder.rglob("*.ubj"))
    mentions(hpo("delete", "background", "--yes"), "background")
    assert not folder.exists()
    with refuses(NoJobError, value="background"):
        job()


def kill_with_its_parent(driver: int) -> None:
    """Kills a driver and who looks after it, who would start another."""
    supervisor = int(Path(f"/proc/{driver}/stat").read_text().rpartition(") ")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    os.kill(driver, signal.SIGKILL)
