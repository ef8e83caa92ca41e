"""Deletion: of single files, of empty folders, and of whole folders that Warmband made for itself."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from trainers import deletion
from trainers.deletion import HELD


def test_a_folder_that_holds_something_stays(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert not deletion.delete_empty_folder(tmp_path / "a")
    assert deletion.delete_empty_folder(tmp_path / "a" / "b")
    assert deletion.delete_empty_folder(tmp_path / "a")
    assert deletion.delete_empty_folder(tmp_path / "a")


def test_a_prefix_with_a_file_anywhere_below_stays(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "notes.txt").touch()
    assert not deletion.delete_empty_prefix(LocalFileSystem(), str(tmp_path / "a"))
    (tmp_path / "a" / "b" / "c" / "notes.txt").unlink()
    assert deletion.delete_empty_prefix(LocalFileSystem(), str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=str(tmp_path)):
        deletion.delete_file(tmp_path)
    deletion.delete_file(tmp_path / "never")


def test_a_temporary_folder_goes_unless_it_is_renamed(tmp_path: Path) -> None:
    with deletion.temporary_folder(tmp_path / "new", prefix="x-") as made:
        (made / "deep").mkdir()
        (made / "deep" / "file").touch()
        assert made.parent == tmp_path / "new"
        assert made.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(KeyError), deletion.temporary_folder(tmp_path) as made:
        raise KeyError
    assert not made.exists()
    with deletion.temporary_folder(tmp_path) as made:
        made.rename(tmp_path / "kept")
    assert (tmp_path / "kept").is_dir()


def test_only_what_is_in_a_scratch_folder_is_deleted_whole(tmp_path: Path) -> None:
    (tmp_path / "mine" / "thesis").mkdir(parents=True)
    with pytest.raises(ValueError, match="scratch"):
        deletion.delete_scratch(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis").is_dir()
    (tmp_path / "mine" / HELD).touch()
    deletion.delete_scratch(tmp_path / "mine" / "thesis")
    assert (tmp_path / "mine").is_dir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(ValueError, match="scratch"):
        deletion.delete_scratch(tmp_path / "link")
    deletion.delete_scratch(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_of_folders_that_look_like_scratch_those_with_the_mark_of_a_dead_process_go(tmp_path: Path) -> None:
    for name in ("warmband-data", "warmband-gang-dead", "warmband-gang-alive", "warmband-of-another-kind", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").touch()
    for name in ("warmband-gang-dead", "warmband-gang-alive", "other"):
        (tmp_path / name / HELD).touch()
    (tmp_path / "warmband-link").symlink_to(tmp_path / "other")
    with (tmp_path / "warmband-gang-alive" / HELD).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        deletion.delete_abandoned_scratch(tmp_path, "warmband-")
    left = {each.name for each in tmp_path.iterdir()}
    assert left == {"warmband-data", "warmband-gang-alive", "warmband-of-another-kind", "other", "warmband-link"}
    assert (tmp_path / "other" / "rows").exists()
