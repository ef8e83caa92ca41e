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
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from hpo import HyperparameterTuner, background
from hpo.cli import app
from hpo.lease import is_dead, is_held
from hpo.store import JobRow, Store
from hpo.supervisor import FIRST_PAUSE, LONGEST_PAUSE, RESTARTS, judge, log_file
from hpo.tables import LOST_AFTER
from tests.hpo.test_tuner import make
from trainers.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
    import sys, time
    import numpy, pandas
    from ray.train import ScalingConfig
    from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
    from trainers import XGBoostTrainer

    random = numpy.random.default_rng(0)
    features = random.normal(size=(3000, 6))
    frame = pandas.DataFrame(features, columns=list("abcdef"))
    frame.insert(0, "y", (features[:, 0] + random.normal(size=3000) > 0).astype("float32"))
    trainer = XGBoostTrainer(
        scaling=ScalingConfig(num_workers=0, resources_per_worker={{"CPU": 1}}),
        hyperparameters={{"objective": "binary:logistic", "eval_metric": "auc", "max_depth": {depth}}},
    )
    tuner = HyperparameterTuner(
        trainer,
        "validation:auc",
        {{"eta": ContinuousParameter(0.01, 0.3)}},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        max_jobs={jobs},
        random_seed=1,
    )
    tuner.fit({{"train": frame[:2000], "validation": frame[2000:]}}, job_name="background", wait=False)
    print("returned", flush=True)
    time.sleep(600)
"""


def hpo(*arguments: str) -> str:
    """What a command prints."""
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, arguments)
    assert result.exception is None, result.exception
    return result.stdout


def until(what: str, found: Callable[[], object], seconds: float = 90.0) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{log_file('background').read_text()}"
        time.sleep(0.1)


def job() -> JobRow:
    with Store() as store:
        return store.job("background")


def trials() -> int:
    with Store() as store:
        return len(store.trials("background"))


@pytest.fixture
def script(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Runs a script that starts a background job; whatever it left is gone afterwards."""
    started: list[subprocess.Popen[str]] = []

    def run(*, jobs: int, depth: int = 2) -> subprocess.Popen[str]:
        code = textwrap.dedent(SCRIPT.format(jobs=jobs, depth=depth))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment = {name: value for name, value in environment.items() if not name.startswith("RAY_ADDRESS")}
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        said = []
        while (line := process.stdout.readline()) and line != "returned\n":
            said.append(line)
        assert line == "returned\n", "".join(said)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
    with Store() as store:
        if any(each.name == "background" for each in store.jobs()):
            store.request_stop("background")
            until("its end", lambda: not is_held(store.job("background"), time.time()))


# ---- what comes after a driver's end


@given(st.sampled_from(["Completed", "Failed", "Stopped"]), st.integers(-15, 130), st.integers(1, 50))
def test_a_job_that_has_ended_is_left_alone(status: str, code: int, deaths: int) -> None:
    verdict = judge(status, code, deaths)
    assert (verdict.again, verdict.reason) == (None, "")


@given(st.sampled_from(["InProgress", "Stopping"]), st.sampled_from([-9, -11, -6, 1, 137]), st.integers(1, 50))
def test_a_driver_that_dies_is_started_again_ever_later_and_not_for_ever(status: str, code: int, deaths: int) -> None:
    verdict = judge(status, code, deaths)
    if deaths <= RESTARTS:
        assert verdict.again == min(FIRST_PAUSE * 2 ** (deaths - 1), LONGEST_PAUSE)
        assert not verdict.reason
    else:
        assert verdict.again is None
        assert f"{deaths} times in a row" in verdict.reason


def test_others_do_not_take_a_job_for_lost_while_its_driver_is_to_be_started_again() -> None:
    assert 2 * LONGEST_PAUSE <= LOST_AFTER


def test_what_is_wrong_is_not_tried_again() -> None:
    verdict = judge("InProgress", 2, 1, "error: no job named 'x'")
    assert verdict.again is None
    assert verdict.reason == "its driver refused to run: no job named 'x'"


def test_the_signal_is_named() -> None:
    assert judge("InProgress", -9, RESTARTS + 1).reason.endswith("the last time by SIGKILL")


# ---- real processes


def test_a_driver_that_refuses_its_job_says_why_and_is_not_started_again(home: Path) -> None:
    now = time.time()
    spec = make(workers=0)._spec({"train": {"kind": "pandas", "open": {}}}, 1)
    with Store() as store:
        store.create_job(JobRow(name="background", created_at=now, heartbeat=now, spec=spec))
    with pytest.raises(ConfigurationError, match="did not start: its driver refused to run: channel 'train' cannot be"):
        background.start("background", None, None)
    assert job().status == "Failed"
    assert "to go on: hpo resume background" in job().reason
    with pytest.raises(ConfigurationError, match=r"did not start: .*channel 'train' cannot be opened again"):
        background.start("background", None, None, resume=True)
    assert "refused to run" in job().reason


@pytest.mark.slow
@pytest.mark.fault
def test_a_background_job_outlives_its_script_and_its_driver(script: Callable[..., subprocess.Popen[str]]) -> None:
    process = script(jobs=5000)
    os.killpg(process.pid, signal.SIGKILL)  # As a shell that goes does, with all of its session.
    process.wait()
    until("its first trials", lambda: trials() > 5)
    first = job().driver
    assert first["log"] == str(log_file("background"))
    assert (os.getsid(first["pid"]), os.getpgid(first["pid"])) != (process.pid, process.pid)
    command = Path(f"/proc/{first['pid']}/cmdline").read_text()
    assert "sqlite" not in command
    assert "background" in command

    follower = subprocess.Popen(
        [sys.executable, "-m", "hpo", "logs", "background", "--follow"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    os.kill(first["pid"], signal.SIGKILL)
    until("another driver", lambda: job().driver["pid"] != first["pid"])
    assert is_dead(first)
    assert job().status == "InProgress"
    before = trials()
    until("more trials", lambda: trials() > before)

    assert "background is Stopped" in hpo("stop", "background", "--wait", "60")
    printed, _ = follower.communicate(timeout=30)
    assert "supervisor: the driver ended by SIGKILL; it is started again in 1 s" in printed
    assert "background: Stopped" in printed
    assert hpo("logs", "background", "--tail", "1") == printed.splitlines(keepends=True)[-1]

    folder = log_file("background").parent
    assert any(folder.rglob("*.ubj"))
    assert hpo("delete", "background", "--yes").startswith("Deleted background: the record of")
    assert not folder.exists()
    with pytest.raises(ConfigurationError, match="no job named"):
        job()


@pytest.mark.slow
@pytest.mark.fault
def test_a_job_whose_every_process_was_killed_is_ended_by_hand_and_resumed(
    script: Callable[..., subprocess.Popen[str]],
) -> None:
    script(jobs=5000)
    until("its first trials", lambda: trials() > 0)
    # Neither the script nor the supervisor: the driver's parent.
    driver = job().driver["pid"]
    supervisor = int(Path(f"/proc/{driver}/stat").read_text().rpartition(") ")[2].split()[1])
    os.kill(supervisor, signal.SIGKILL)
    os.kill(driver, signal.SIGKILL)
    until("the driver's death", lambda: is_dead(job().driver))
    assert job().status == "InProgress"
    # Nobody is left who could end it, but the command.
    assert "background is Stopped: stopped after its driver had died" in hpo("stop", "background")

    tuner = HyperparameterTuner.attach("background")
    before = trials()
    tuner.resume(wait=False)
    until("more trials", lambda: trials() > before)
    tuner.stop_tuning_job()
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Stopped"
