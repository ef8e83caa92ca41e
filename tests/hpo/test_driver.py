"""A driver takes a job's row and runs it, from wherever the one before it ended."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import Callback, ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.driver import drive, wait_for_lease
from hpo.interrupt import INTERRUPTED, TERMINATED, Requests
from hpo.store import JobRow, Store
from hpo.tables import LOST_AFTER
from trainers import ConfigurationError, DataError, LeaseError, XGBoostTrainer, storage

ROWS = np.random.default_rng(7)
FEATURES = ROWS.normal(size=(400, 4)).astype(np.float32)
FRAME = pandas.DataFrame(FEATURES, columns=["a", "b", "c", "d"])
FRAME.insert(0, "y", (FEATURES @ [1, -1, 0.5, 0] + ROWS.normal(size=400) > 0).astype(int))
CHANNELS = {"train": FRAME[:300], "validation": FRAME[300:]}


class Counting(Callback):
    """Does something to the job at its n-th report, and counts what it is told."""

    def __init__(self, at: int = 10**9, act: Callable[[], None] = lambda: None) -> None:
        self.at, self.act = at, act
        self.reports = 0
        self.ends: list[tuple[str, str]] = []

    def on_trial_report(self, trial: Any, report: Any) -> None:
        self.reports += 1
        if self.reports == self.at:
            self.act()

    def on_trial_end(self, trial: Any, end: Any) -> None:
        self.ends.append((trial.id, end.status))


def tuner(folder: Path, callbacks: tuple[Callback, ...] = (), workers: int = 0, **options: Any) -> HyperparameterTuner:
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1), "subsample": ContinuousParameter(0.5, 1)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=9, min_resource=1)),
        max_jobs=9,
        random_seed=1729,
        storage_path=str(folder),
        store=f"sqlite:///{folder}/record.db",
        callbacks=callbacks,
        console=Console(file=io.StringIO()),
        **options,
    )


def answer(folder: Path, name: str) -> dict[str, Any]:
    """What has to be alike, down to the winner's bytes."""
    with Store(f"sqlite:///{folder}/record.db") as store:
        job, trials = store.job(name), store.trials(name)
        reports = {(row.trial_id, row.step): row.metrics for row in store.reports(name)}
    return {
        "status": (job.status, job.reason),
        "trials": [
            (row.trial_id.removeprefix(name), row.status, row.resource, row.objective, row.hyperparameters)
            for row in trials
        ],
        "reports": {(trial.removeprefix(name), step): metrics for (trial, step), metrics in reports.items()},
        "best": (job.summary["best"]["trial"].removeprefix(name), job.summary["best"]["value"]),
        "model": storage.read(job.summary["best"]["checkpoint"]),
        "untuned": job.summary["untuned"],
        "used": job.summary["resource_used"],
        "kept": sorted(row.trial_id.removeprefix(name) for row in trials if row.checkpoint),
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(CHANNELS, job_name="whole")
    return answer(folder, "whole")


def resumed(folder: Path, name: str, **options: Any) -> str:
    """Goes on with a job; returns what was printed."""
    said = io.StringIO()
    drive(f"sqlite:///{folder}/record.db", name, console=Console(file=said, width=300), resume=True, **options)
    return said.getvalue()


def row(folder: Path) -> JobRow:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return store.job("job")


def interrupted(folder: Path, at: int) -> Counting:
    """Begins a job that Ctrl-C stops at its `at`-th report."""
    stopping = Counting(at, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        tuner(folder, (stopping,)).fit(CHANNELS, job_name="job")
    return stopping


# ---- stopped, and on


@pytest.mark.parametrize("at", [1, 8, 30])
def test_a_stopped_job_goes_on_to_the_same_answer(expected: dict[str, Any], tmp_path: Path, at: int) -> None:
    stopping = interrupted(tmp_path, at)
    assert (row(tmp_path).status, row(tmp_path).reason) == ("Stopped", INTERRUPTED)
    counting = Counting()
    said = resumed(tmp_path, "job", callbacks=(counting,))
    assert answer(tmp_path, "job") == expected
    assert "going on" in said
    told = {end for end in stopping.ends if end[1] == "Completed"}
    assert not told & set(counting.ends), "each end is told once"
    assert {trial for trial, _ in stopping.ends + counting.ends} == {f"job-{number:03d}" for number in range(9)}
    assert not (tmp_path / "job" / "inputs").exists(), "nobody needs the copies any more"
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        lines = [line.text for line in store.lines("job")]
    assert lines.index(f"job: Stopped, {INTERRUPTED}") < len(lines) - 1, "what both drivers said, in order"
    assert any("going on" in line for line in lines)
    assert any("bracket 1 of 3 at 1 unit: 2 went on" in line for line in lines)
    assert lines[-1] == "job: Completed"


def test_a_completed_job_is_left_as_it_is(expected: dict[str, Any], tmp_path: Path) -> None:
    tuner(tmp_path).fit(CHANNELS, job_name="job")
    before = row(tmp_path)
    assert "job is Completed: there is nothing left to run" in resumed(tmp_path, "job")
    assert replace(row(tmp_path), heartbeat=before.heartbeat) == before


def test_an_ended_job_is_driven_again_only_where_that_is_asked_for(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    with pytest.raises(
        ConfigurationError, match="job 'job' is Stopped: interrupted by Ctrl-C; to go on with it: hpo resume"
    ):
        drive(f"sqlite:///{tmp_path}/record.db", "job", console=Console(file=io.StringIO()))


def test_other_data_are_refused_and_the_job_stays_as_it_was(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    changed = {**CHANNELS, "train": FRAME[:300].assign(a=0.0)}
    with pytest.raises(DataError, match="channel 'train' has changed since the job began"):
        resumed(tmp_path, "job", inputs=changed)
    assert row(tmp_path).status == "Stopped"


def test_a_checkpoint_that_was_cut_short_costs_time_alone(
    expected: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted(tmp_path, 3)
    cut = [path for path in tmp_path.glob("job/job-*/*") if path.stat().st_size]
    assert cut
    for path in cut:
        path.write_bytes(path.read_bytes()[:100])
    resumed(tmp_path, "job")
    assert "gone or cut short: it starts again" in caplog.text
    found, whole = answer(tmp_path, "job"), dict(expected)
    assert found.pop("used") > whole.pop("used")
    assert found == whole


def test_a_request_to_stop_is_heard_while_the_loop_itself_trains() -> None:
    asked, heard = threading.Event(), threading.Event()
    with Requests(asked.is_set, heard.set):
        assert not heard.wait(0.6)
        asked.set()
        assert heard.wait(30)


# ---- the lease


def test_a_job_that_is_driven_is_refused(tmp_path: Path) -> None:
    refused: list[BaseException] = []

    def second() -> None:
        try:
            resumed(tmp_path, "job")
        except LeaseError as error:
            refused.append(error)

    tuner(tmp_path, (Counting(5, second),)).fit(CHANNELS, job_name="job")
    assert len(refused) == 1
    assert f"process {os.getpid()}" in str(refused[0])
    assert row(tmp_path).status == "Completed"


def test_a_silent_driver_elsewhere_is_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        silent = time.time() - LOST_AFTER + 1.0
        where = {"host": "gone", "ip": "192.0.2.7", "pid": 1}
        store.create_job(JobRow(name="job", created_at=0.0, heartbeat=silent, lease="theirs", driver=where))
        began = time.monotonic()
        wait_for_lease(store, "job", said.append)
        assert 0.5 < time.monotonic() - began < 20
    assert said[0].startswith("process 1 on gone (192.0.2.7) drives job: waiting up to 1 s")


# ---- killed

SCRIPT = """
    import os, sys
    from pathlib import Path
    from tests.hpo.test_driver import CHANNELS, Counting, tuner

    folder, at, number, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    counting = Counting(at, lambda: os.kill(os.getpid(), number))
    tuner(folder, (counting,), workers, max_parallel_jobs=2 if workers else 1).fit(CHANNELS, job_name="job")
"""


def run_until(folder: Path, at: int, number: signal.Signals, workers: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs the job in a process of its own, which sends itself a signal at its `at`-th report."""
    arguments = [str(folder), str(at), str(int(number)), str(workers)]
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.fault
@pytest.mark.parametrize("at", [3, 45])
def test_a_driver_that_was_killed_is_followed_by_another(expected: dict[str, Any], tmp_path: Path, at: int) -> None:
    assert run_until(tmp_path, at, signal.SIGKILL).returncode == -signal.SIGKILL
    resumed(tmp_path, "job")
    assert answer(tmp_path, "job") == expected
    # Also where it was killed before anything of a trial was written down.
    first, second = (end - began for began, end in row(tmp_path).summary["runs"])
    assert first < row(tmp_path).summary["wall_seconds"] <= first + second


@pytest.mark.fault
def test_sigterm_stops_gracefully_and_says_so(expected: dict[str, Any], tmp_path: Path) -> None:
    ended = run_until(tmp_path, 17, signal.SIGTERM)
    assert ended.returncode == 143, ended.stderr
    assert row(tmp_path).status == "Stopped"
    assert row(tmp_path).reason == TERMINATED
    resumed(tmp_path, "job")
    assert answer(tmp_path, "job") == expected
