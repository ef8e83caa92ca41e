"""The folder of a job's files: new or empty when the job begins, and the job's own by its mark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpo.jobs.files.deletion import Files
from hpo.jobs.files.folder import DRIVER_LOG, FOLDER_ID, MARK, check_free, claim
from hpo.record import JobRow
from tests.support.refusals import refuses
from trainers import ConfigurationError


def row(folder: Path, identity: str = "one") -> JobRow:
    return JobRow(name="job", created_at=0.0, spec={FOLDER_ID: identity, "storage_path": str(folder)}, plan={})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job's, which is not there yet."""
    return tmp_path / "job"


def test_a_job_begins_in_a_new_or_an_empty_folder(folder: Path) -> None:
    check_free(str(folder), "job")
    folder.mkdir()
    check_free(str(folder), "job")


@pytest.mark.parametrize("name", ["thesis.txt", "job-003", "tokens.json", ".env"])
def test_a_job_does_not_begin_in_a_folder_with_files(folder: Path, name: str) -> None:
    folder.mkdir()
    (folder / name).touch()
    with refuses(ConfigurationError, field=str(folder), value=name, remedy=("--name", "storage_path")):
        check_free(str(folder), "job")
    with refuses(ConfigurationError, field=str(folder), value=name, remedy=("--name", "storage_path")):
        claim(str(folder), row(folder.parent), begun=False)
    assert [each.name for each in folder.iterdir()] == [name]


def test_a_job_marks_its_folder_before_it_writes_anything_else(folder: Path) -> None:
    folder.mkdir()
    (folder / DRIVER_LOG).touch()
    with refuses(ConfigurationError, field=str(folder), value=DRIVER_LOG, remedy=("--name", "storage_path")):
        claim(str(folder), row(folder.parent), begun=False)
    (folder / DRIVER_LOG).unlink()
    claim(str(folder), row(folder.parent), begun=False)
    assert [each.name for each in folder.iterdir()] == [MARK]


@pytest.mark.parametrize("name", ["", "jobs", "serve", "serve/sources/job", "logs", "models/job", "data/job", "../"])
def test_a_job_does_not_begin_in_a_folder_of_warmbands_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also through a link."""
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home" / "deep"))
    (tmp_path / "home" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "home" / "deep")
    for home in (tmp_path / "home" / "deep", tmp_path / "link"):
        with refuses(ConfigurationError, field=str(home / name), remedy="storage_path"):
            check_free(str(home / name), "job")
    check_free(str(tmp_path / "home" / "deep" / "jobs" / "job"), "job")
    check_free(str(tmp_path / "home" / "deep" / "job"), "job")
    check_free(str(tmp_path / "home" / "deep" / "of-mine" / "job"), "job")
    check_free(str(tmp_path / "elsewhere" / "serve"), "serve")


def test_deletion_leaves_a_folder_without_the_jobs_mark(folder: Path) -> None:
    """Also one that was put there while the job waited to be started, or whose mark is another job's."""
    folder.mkdir()
    (folder / "thesis.txt").touch()
    files = Files.of(row(folder.parent))
    assert not files.folder
    assert str(folder) in files.text
    assert files.remove() == []
    assert (folder / "thesis.txt").exists()
    (folder / "thesis.txt").unlink()
    assert Files.of(row(folder.parent)).remove() == []
    assert folder.exists(), "an empty folder without a mark may be somebody's, too"
    claim(str(folder), row(folder.parent), begun=False)
    assert not Files.of(row(folder.parent, "another")).folder
    assert Files.of(row(folder.parent)).remove() == []
    assert not folder.exists()


def test_a_start_that_was_killed_before_the_mark_is_begun_again_or_deleted(folder: Path) -> None:
    left = (f".{MARK}.{'0' * 32}", f".warmband-{'0' * 32}", f"..warmband-{'0' * 32}.{'0' * 32}")
    put(folder, left)
    check_free(str(folder), "job")
    assert Files.of(row(folder.parent)).remove() == []
    assert list(folder.iterdir()) == []
    put(folder, left)
    claim(str(folder), row(folder.parent), begun=False)
    assert Files.of(row(folder.parent)).remove() == []
    assert not folder.exists()


def test_a_file_that_comes_between_the_look_and_the_deletion_stays(folder: Path) -> None:
    """The command asks its user in between."""
    put(folder, (f".{MARK}.{'0' * 32}",))
    files = Files.of(row(folder.parent))
    put(folder, ("thesis.txt",))
    assert files.remove() == [str(folder / "thesis.txt")]
    assert files_in(folder) == {"thesis.txt"}


def test_a_driver_log_is_the_jobs_where_a_driver_in_the_background_wrote_it(folder: Path) -> None:
    claim(str(folder), row(folder.parent), begun=False)
    (folder / DRIVER_LOG).touch()
    assert Files.of(row(folder.parent)).remove() == [str(folder / DRIVER_LOG)]
    (folder / DRIVER_LOG).unlink()
    for logs in (False, True, False):
        claim(str(folder), row(folder.parent), begun=False, logs=logs)
    (folder / DRIVER_LOG).touch()
    assert Files.of(row(folder.parent)).remove() == []
    assert not folder.exists()


OF_THE_JOB = (
    "inputs/train-0123456789abcdef01234567.npz",
    "driver.log",
    f".{MARK}.0123456789abcdef0123456789abcdef",
    ".warmband-reach-0123456789abcdef0123456789abcdef",
    "profiles/job-003.json.gz",
    "untuned/000009.ubj",
    "probe/000001",
    "job-003/000001.tar",
    "job-003/.000003.tar.0123456789abcdef0123456789abcdef",
    "job-004/000003/manifest.json",
    "job-004/000003/worker-0.tar",
    "job-004/000003/shard-00001-0123abcd",
    "job-004/000003/.worker-1.tar.0123456789abcdef0123456789abcdef",
    "job-005/000003.pt/state.pt",
    "job-005/000003.pt/index.json",
)
"""What a job writes into its folder, with what a killed process leaves."""

FOREIGN = (
    "thesis.txt",
    "job-x/000001.ubj",
    "another-003/000001.ubj",
    "inputs/mine.npz",
    "inputs/train-20261130.npz",
    "job-003/20261130.tar.gz",
    "job-003/20261130.tar",
    "job-003/000001.ubj.bak",
    "job-003/000001.csv",
    "job-003/20261130/manifest.json",
    "profiles/job-003.json.gz.bak",
    ".warmband-reach-notes",
    ".warmband-notes",
    "inputs/notes/a.txt",
    "profiles/mine.json.gz",
    "untuned/notes.txt",
    "job-003/best.ubj",
    "job-003/12.ubj",
    "job-003/000009.ubj/deep/best.ubj",
    "job-004/000003/notes.txt",
    "job-004/000003/manifest.json.bak",
    "job-005/000003.pt/000001.pt",
    ".warmband-job.json.bak",
)
"""What somebody else may put there."""


def put(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def files_in(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if not each.is_dir() or each.is_symlink()}


def test_deletion_takes_all_that_the_job_wrote(folder: Path) -> None:
    claim(str(folder), row(folder.parent), begun=False, logs=True)
    put(folder, OF_THE_JOB)
    assert Files.of(row(folder.parent)).remove() == []
    assert not folder.exists()


def test_deletion_takes_nothing_that_somebody_else_wrote_and_names_it(folder: Path, tmp_path: Path) -> None:
    """Also what a link leads to, in the place of each folder of the job."""
    claim(str(folder), row(folder.parent), begun=False, logs=True)
    put(folder, OF_THE_JOB + FOREIGN)
    put(tmp_path / "elsewhere", OF_THE_JOB)
    links = {"job-006": "job-003", "job-007/000003": "job-004/000003", "job-008/000003.ubj": "untuned/000009.ubj"}
    for name, goal in links.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(tmp_path / "elsewhere" / goal)
    left = Files.of(row(folder.parent)).remove()
    assert files_in(folder) == {*FOREIGN, *links}
    assert files_in(tmp_path / "elsewhere") == set(OF_THE_JOB)
    tops = sorted({name.partition("/")[0] for name in (*FOREIGN, *links)})
    assert left == [str(folder / name) for name in tops]
    assert Files.of(row(folder.parent)).remove() == [], "without its mark, the folder is the job's no more"


def test_links_in_the_place_of_the_folders_of_copies_and_traces_stay(folder: Path, tmp_path: Path) -> None:
    claim(str(folder), row(folder.parent), begun=False)
    put(tmp_path / "elsewhere", OF_THE_JOB)
    for name in ("inputs", "profiles"):
        (folder / name).symlink_to(tmp_path / "elsewhere" / name)
    assert Files.of(row(folder.parent)).remove() == [str(folder / "inputs"), str(folder / "profiles")]
    assert files_in(tmp_path / "elsewhere") == set(OF_THE_JOB)


def test_of_the_logs_of_programs_those_of_the_jobs_trials_go(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    logs = tmp_path / "home" / "logs" / "job"
    claim(str(folder), row(folder.parent), begun=False)
    put(logs, ("job-003.log", "job-003.worker-1.log", "untuned.log", "mine.log", "job-003.log.gz", "deep/job-003.log"))
    assert Files.of(row(folder.parent)).remove() == [
        str(logs / name) for name in ("deep", "job-003.log.gz", "mine.log")
    ]
    assert files_in(logs) == {"mine.log", "job-003.log.gz", "deep/job-003.log"}


def test_the_folder_of_a_drivers_log_is_the_jobs_by_its_mark(folder: Path, tmp_path: Path) -> None:
    logs = tmp_path / "home" / "job"
    put(logs, (DRIVER_LOG,))
    job = replace(row(folder.parent), driver={"log": str(logs / DRIVER_LOG)})
    claim(str(folder), job, begun=False)
    assert Files.of(job).remove() == []
    assert files_in(logs) == {DRIVER_LOG}
    (logs / DRIVER_LOG).unlink()
    claim(str(folder), job, begun=False)
    claim(str(logs), job, begun=False, logs=True)
    put(logs, (DRIVER_LOG, "mine.txt"))
    assert Files.of(job).remove() == [str(logs / "mine.txt")]
    assert files_in(logs) == {"mine.txt"}
    assert not folder.exists()
