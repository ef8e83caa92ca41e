"""The folder of a job's files: new or empty when the job begins, and the job's own by its mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.jobs.files.deletion import Files
from hpo.jobs.files.folder import COPIES, FOLDER_ID, MARK, check_free, claim
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


def test_copies_of_inputs_are_there_before_the_mark(folder: Path) -> None:
    (folder / COPIES).mkdir(parents=True)
    claim(str(folder), row(folder.parent), begun=False)
    assert {each.name for each in folder.iterdir()} == {COPIES, MARK}


def test_deletion_leaves_a_folder_without_the_jobs_mark(folder: Path) -> None:
    """Also one that was put there while the job waited to be started, or whose mark is another job's."""
    (folder / COPIES).mkdir(parents=True)
    assert Files.of(row(folder.parent)).folder == str(folder)
    (folder / "thesis.txt").touch()
    files = Files.of(row(folder.parent))
    assert not files.folder
    assert str(folder) in files.text
    files.remove()
    assert (folder / "thesis.txt").exists()
    (folder / "thesis.txt").unlink()
    claim(str(folder), row(folder.parent), begun=False)
    assert not Files.of(row(folder.parent, "another")).folder
    Files.of(row(folder.parent)).remove()
    assert not folder.exists()
