"""A driver takes a job's row and runs it, from wherever the one before it ended."""

from __future__ import annotations

import io
import logging
import os
import re
import signal
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo.jobs.driver import drive, wait_for_lease
from hpo.jobs.replay import GOES_ON_FROM
from hpo.jobs.stop_signals import LOOK_SECONDS, Requests
from hpo.record.lease import this_process
from hpo.record.store import JobRow, Store
from hpo.record.tables import LOST_AFTER
from hpo.search.observer import INTERRUPTED, TERMINATED
from tests.support.driving import CHANNELS, FRAME, Counting, answer, row, tuner
from tests.support.hpo.jobs.driver import (
    expected,  # noqa: F401  # A fixture.
    resumed,
)
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.rows import held_by, silence
from trainers import ConfigurationError, DataError, LeaseError


def interrupted(folder: Path, at: int) -> Counting:
    """Begins a job that Ctrl-C stops at its `at`-th report."""
    stopping = Counting(at, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        tuner(folder, (stopping,)).fit(CHANNELS, job_name="job")
    return stopping


def recorded(folder: Path) -> int:
    """How many trials the job has in the record."""
    with Store(f"sqlite:///{folder}/record.db") as store:
        return len(store.trials("job"))


def goes_on(text: str, trials: int) -> bool:
    """Whether a line says how many trials the job had, all of which had ended."""
    return any(re.findall(r"\d+", line) == [f"{trials}"] * 2 for line in text.splitlines())


@pytest.mark.parametrize("at", [1, 8, 30])
def test_a_stopped_job_goes_on_to_the_same_answer(expected: dict[str, Any], tmp_path: Path, at: int) -> None:
    stopping = interrupted(tmp_path, at)
    assert (row(tmp_path).status, row(tmp_path).reason) == ("Stopped", INTERRUPTED)
    known = recorded(tmp_path)
    counting = Counting()
    said = resumed(tmp_path, "job", callbacks=(counting,))
    assert goes_on(said, known)
    assert answer(tmp_path, "job") == expected
    told = {end for end in stopping.ends if end[1] == "Completed"}
    assert not told & set(counting.ends), "each end is told once"
    assert {trial for trial, _ in stopping.ends + counting.ends} == {f"job-{number:03d}" for number in range(9)}
    assert not (tmp_path / "job" / "inputs").exists(), "nobody needs the copies any more"
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        lines = [line.text for line in store.lines("job")]
    assert lines.index(f"job: Stopped, {INTERRUPTED}") < len(lines) - 1, "what both drivers said, in order"
    assert goes_on("\n".join(lines), known)
    # Of the first of 3 brackets, at 1 unit, 2 went on and 2 stopped.
    cuts = [sorted(re.findall(r"\d+", line.partition("bracket")[2])) for line in lines]
    assert ["1", "1", "2", "2", "3"] in cuts
    assert lines[-1] == "job: Completed"


def test_a_completed_job_is_left_as_it_is(expected: dict[str, Any], tmp_path: Path) -> None:
    tuner(tmp_path).fit(CHANNELS, job_name="job")
    before = row(tmp_path)
    mentions(resumed(tmp_path, "job"), "job", "Completed")
    assert replace(row(tmp_path), heartbeat=before.heartbeat) == before


def test_an_ended_job_is_driven_again_only_where_that_is_asked_for(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    with refuses(ConfigurationError, field=("job", INTERRUPTED), value="Stopped", remedy="hpo resume job"):
        drive(f"sqlite:///{tmp_path}/record.db", "job", console=Console(file=io.StringIO()))


def test_other_data_are_refused_and_the_job_stays_as_it_was(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    changed = {**CHANNELS, "train": FRAME[:300].assign(a=0.0)}
    with refuses(DataError, field=("channel", "train", "column"), value="'a'"):
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
    assert any(str(path) in caplog.text for path in cut)
    assert answer(tmp_path, "job") == expected


def test_of_a_record_that_an_older_warmband_wrote_checkpoints_are_gone_on_from(
    expected: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted(tmp_path, 8)
    with closing(sqlite3.connect(tmp_path / "record.db")) as record:
        record.execute("UPDATE trials SET files = '{}', details = json_remove(details, '$.goes_on_from.files')")
        record.commit()
    resumed(tmp_path, "job")
    assert str(tmp_path / "job") not in caplog.text, "no checkpoint is named"
    assert answer(tmp_path, "job") == expected


def test_a_checkpoint_that_changed_is_not_gone_on_from_and_costs_time_alone(
    expected: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted(tmp_path, 8)
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        trained = [trial for trial in store.trials("job") if trial.checkpoint]
    spoilt = {}
    for trial in trained:
        path = Path(trial.details.get(GOES_ON_FROM, {}).get("checkpoint") or trial.checkpoint)
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
        spoilt[trial.trial_id] = str(path)
    resumed(tmp_path, "job")
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    again = {name for name, path in spoilt.items() if any(not missing_names(line, name, path) for line in warned)}
    assert again
    assert answer(tmp_path, "job") == expected
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        assert not any(trial.attempts for trial in store.trials("job")), "it is seen before any worker reads it"


def test_a_request_to_stop_is_heard_while_the_loop_itself_trains() -> None:
    asked, heard = threading.Event(), threading.Event()
    with Requests(asked.is_set, heard.set):
        assert not heard.wait(0.6)
        asked.set()
        assert heard.wait(30)


def test_a_job_that_is_driven_is_refused(tmp_path: Path) -> None:
    refused: list[BaseException] = []

    def second() -> None:
        try:
            resumed(tmp_path, "job")
        except LeaseError as error:
            refused.append(error)

    tuner(tmp_path, (Counting(5, second),)).fit(CHANNELS, job_name="job")
    assert len(refused) == 1
    mentions(str(refused[0]), "job", f"process {os.getpid()}", "hpo stop job")
    assert row(tmp_path).status == "Completed"


@pytest.mark.parametrize("ahead", [0.0, 90.0, -3600.0])
def test_a_silent_driver_elsewhere_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    """Whatever this machine's clock says."""
    said: list[str] = []
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        assert sum(slept) < 2 * LOST_AFTER, "it waits on"
        slept.append(seconds)
        silence(store, seconds)

    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + ahead)
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        where = {"host": "gone", "ip": "192.0.2.7", "pid": 1}
        store.create_job(JobRow(name="job", created_at=0.0, lease="theirs", driver=where))
        silence(store, LOST_AFTER - 3.0)
        wait_for_lease(store, "job", said.append, sleep)
    assert 0.0 < sum(slept) <= 3.0 + LOOK_SECONDS
    mentions(said[0], "process 1", "gone", "192.0.2.7", "job", "3 s")


TAKEN = ("job", "process 4711", "elsewhere", "192.0.2.7", "CPUs", "GPUs", "kill -KILL 4711")


@pytest.mark.parametrize("there", [True, False])
def test_who_takes_a_job_over_says_what_the_driver_before_may_hold(tmp_path: Path, there: bool) -> None:
    """Unless that is known to be dead, or has ended the job itself."""
    interrupted(tmp_path, 3)
    known = recorded(tmp_path)
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        where = {"host": "elsewhere", "ip": "192.0.2.7", "pid": 4711}
        here = {**this_process(), "pid": 4711, "started": -1.0}
        store.update_job("job", status="InProgress", reason="", ended_at=None)
        held_by(store, where if there else here, "job")
        silence(store, LOST_AFTER + 10.0)
        said = resumed(tmp_path, "job")
        lines = "\n".join(line.text for line in store.lines("job"))
    for text in (said, lines):
        assert ("4711" in text) is there, text
        if there:
            mentions(text, *TAKEN)
            assert max(map(float, re.findall(r"\b(\d+) s\b", text))) >= LOST_AFTER + 10.0
        assert goes_on(text, known)
    assert "4711" not in resumed(tmp_path, "job")


def test_sigterm_stops_gracefully_and_says_so(expected: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        tuner(tmp_path, (Counting(17, lambda: os.kill(os.getpid(), signal.SIGTERM)),)).fit(CHANNELS, job_name="job")
    assert ended.value.code == 143
    assert row(tmp_path).status == "Stopped"
    assert row(tmp_path).reason == TERMINATED
    resumed(tmp_path, "job")
    assert answer(tmp_path, "job") == expected
