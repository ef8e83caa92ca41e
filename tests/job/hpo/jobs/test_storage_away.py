"""Jobs whose models' storage goes away, and resumes that fail early: nothing is lost, and the answer is the same."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpo import Callback
from hpo.jobs.files.deletion import Files
from hpo.record.store import Store
from hpo.search.observer import INTERRUPTED, STOP_REQUESTED
from tests.support import driving
from tests.support.driving import CHANNELS, Counting, answer, tuner
from tests.support.hpo.jobs.storage_away import (
    Disk,
    interrupt,
    models,
    quick,  # noqa: F401  # Of every test.
    resume,
    stopped,
    undisturbed,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import mentions, refuses
from trainers import patient_storage, storage
from trainers.errors import ConfigurationError


class Starts(Callback):
    """Acts as the job starts."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def on_job_start(self, job: Any) -> None:
        self.act()


def test_a_resume_that_is_stopped_as_it_starts_removes_no_model(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    stopped(tmp_path)
    before, summary = models(tmp_path), driving.row(tmp_path).summary
    assert before
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path, Starts(interrupt))
    after = driving.row(tmp_path)
    assert models(tmp_path) == before
    assert {**after.summary, "runs": 0, "forecast": 0} == {**summary, "runs": 0, "forecast": 0}
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        named = [trial.checkpoint for trial in store.trials("job") if trial.checkpoint]
    assert named
    assert all(Path(uri).is_file() for uri in named)
    resume(tmp_path)
    assert answer(tmp_path, "job") == undisturbed


@pytest.mark.parametrize("how", ["gone", "a_file"])
def test_a_job_goes_on_when_its_storage_is_back(
    how: str, tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, said = Disk(tmp_path), []
    job = tuner(tmp_path, (Counting(12, getattr(disk, how)),))

    def sleep(seconds: float, really: Callable[[float], None] = patient_storage.time.sleep) -> None:
        if disk.aside.exists() and len(said) == 3:
            disk.back()
        said.append(seconds)
        really(seconds)

    monkeypatch.setattr(patient_storage.time, "sleep", sleep)
    job.fit(CHANNELS, job_name="job")
    assert answer(tmp_path, "job") == undisturbed
    printed = job._console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count("10 minutes") == 1
    assert printed.count(patient_storage.BACK) == 1


def test_a_job_whose_storage_stays_away_is_stopped_and_goes_on_later(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path)
    monkeypatch.setattr(patient_storage, "GIVE_UP_SECONDS", 0.2)
    tuner(tmp_path, (Counting(12, disk.gone),)).fit(CHANNELS, job_name="job")
    row = driving.row(tmp_path)
    assert row.status == "Stopped"
    mentions(row.reason, str(tmp_path / "job"), "disk")
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        assert not [trial for trial in store.trials("job") if trial.status == "Failed"]
    resume(tmp_path)  # Still away: it is not made anew, on the disk below.
    assert driving.row(tmp_path).status == "Stopped"
    assert not disk.job.exists()
    disk.back()
    resume(tmp_path)
    assert answer(tmp_path, "job") == undisturbed


def test_ctrl_c_ends_the_wait_for_storage(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    disk = Disk(tmp_path)

    class Away(Counting):
        def on_trial_report(self, trial: Any, report: Any) -> None:
            super().on_trial_report(trial, report)
            if self.reports == self.at:
                signal.setitimer(signal.ITIMER_REAL, 0.3)

    before = signal.signal(signal.SIGALRM, lambda number, frame: interrupt())
    try:
        with pytest.raises(KeyboardInterrupt):
            tuner(tmp_path, (Away(12, disk.gone),)).fit(CHANNELS, job_name="job")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert driving.row(tmp_path).reason == INTERRUPTED
    disk.back()
    resume(tmp_path)
    assert answer(tmp_path, "job") == undisturbed


def test_a_stop_ends_the_wait_of_a_resume_for_its_storage(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(tmp_path)
    disk = Disk(tmp_path)
    disk.gone()
    monkeypatch.setattr(patient_storage, "GIVE_UP_SECONDS", 30.0)

    def stop() -> None:
        with Store(f"sqlite:///{tmp_path}/record.db") as store:
            assert store.request_stop("job")

    resume(tmp_path, Starts(stop))
    ended = driving.row(tmp_path)
    assert (ended.status, ended.reason) == ("Stopped", STOP_REQUESTED)
    disk.back()
    resume(tmp_path)
    assert answer(tmp_path, "job") == undisturbed


def test_models_that_are_gone_for_good_are_trained_again(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    stopped(tmp_path)
    shutil.rmtree(tmp_path / "job")
    (tmp_path / "job").mkdir()
    resume(tmp_path)
    again = answer(tmp_path, "job")
    assert again["best"] == undisturbed["best"]
    assert again["trials"] == undisturbed["trials"]


def test_a_second_job_of_that_name_does_not_share_its_folder(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    tuner(tmp_path).fit(CHANNELS, job_name="job")
    other = f"sqlite:///{tmp_path}/other.db"
    taken = str(tmp_path / "job")
    with refuses(ConfigurationError, field=taken, value="'job'", remedy=("job_name", "storage_path")):
        tuner(tmp_path, store=other).fit(CHANNELS, job_name="job")
    with Store(other) as store:
        assert not store.jobs()
    assert answer(tmp_path, "job") == undisturbed


def test_a_folder_that_became_another_job_s_is_left_alone(tmp_path: Path) -> None:
    stopped(tmp_path)
    before = models(tmp_path)
    mark = tmp_path / "job" / ".warmband-job.json"
    mark.write_text(mark.read_text().replace('"id": "', '"id": "other'))
    with refuses(ConfigurationError, field=str(tmp_path / "job"), value="'job'", remedy="storage_path"):
        resume(tmp_path)
    assert models(tmp_path) == before
    files = Files.of(driving.row(tmp_path))
    files.remove()
    assert models(tmp_path) == before
    mentions(files.text, str(tmp_path / "job"))
    assert not files.folder


@pytest.mark.parametrize("part", ["read", "write"])
def test_a_worker_tries_again_with_growing_pauses(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_storage, "PAUSES", (1.0, 2.0, 4.0))
    slept: list[float] = []
    clock = [0.0]
    monkeypatch.setattr(patient_storage, "ASK_SECONDS", 60.0)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(patient_storage, "time", type("Clock", (), {"monotonic": lambda: clock[0], "sleep": sleep}))
    told: list[str] = []
    place = patient_storage.PatientStorage(told.append)
    uri = storage.join(str(tmp_path), "gone", "trial", "000001")
    with refuses(patient_storage.StorageError, field=str(tmp_path / "gone"), remedy="disk"):
        place.read(uri) if part == "read" else place.write(uri, b"")
    assert slept[:4] == [1.0, 2.0, 4.0, 4.0]
    assert sum(slept) == pytest.approx(600.0)
    assert len(told) == len(slept) + 1


def test_a_folder_that_goes_before_the_first_model_is_not_made_anew_either(
    tmp_path: Path, undisturbed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path)
    monkeypatch.setattr(patient_storage, "GIVE_UP_SECONDS", 0.2)
    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (Starts(interrupt),)).fit(CHANNELS, job_name="job")
    disk.gone()
    resume(tmp_path)
    assert driving.row(tmp_path).status == "Stopped"
    assert not disk.job.exists()
    disk.back()
    resume(tmp_path)
    assert answer(tmp_path, "job") == undisturbed
