"""Every deletion of files and folders: no other module deletes one.

Three things may be deleted: a file by its name, a folder that holds nothing, and a whole folder that a process of
Warmband made new for itself. Who names a file has to know that Warmband wrote it; `trainers.checkpoint` and
`hpo.jobs.files` say which files a job writes.

The functions raise OSError; `trainers.storage` puts it into words.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HELD = ".held"
"""Name of the file that marks a scratch folder; the process that made the folder holds a lock on it while it lives."""


def delete_file(path: str | Path) -> None:
    """Delete a file or a link on a disk; that it is not there is no error.

    Raises:
        OSError: it is there and cannot be deleted; a folder cannot.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)


def delete_empty_folder(path: str | Path) -> bool:
    """Delete a folder on a disk if it holds nothing; return whether it is gone.

    A link to a folder stays, as does a folder that somebody uses as a mount point.
    """
    with suppress(OSError):
        os.rmdir(path)
    return not os.path.lexists(path)


def delete_object(filesystem: Any, path: str) -> None:
    """Delete a file of one of pyarrow's file systems; that it is not there is no error.

    Raises:
        OSError: it is there and cannot be deleted.
    """
    with suppress(FileNotFoundError):
        filesystem.delete_file(path)


def delete_empty_prefix(filesystem: Any, path: str) -> bool:
    """Delete a folder of one of pyarrow's file systems if it holds no file; return whether it is gone.

    An object store has no folders, only objects that stand for one. Pyarrow deletes such an object by its own name in
    no other way than with all that begins with the name, so the folder is listed first.

    Raises:
        OSError: it cannot be listed or deleted.
    """
    from pyarrow.fs import FileSelector, FileType

    held = filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
    if any(info.type != FileType.Directory for info in held):
        return False
    try:
        filesystem.delete_dir(path)
    except OSError:  # Of Google's, pyarrow refuses one that is not there.
        if filesystem.get_file_info(path).type != FileType.NotFound:
            raise
    return True


@contextmanager
def temporary_folder(
    parent: str | Path | None = None, *, prefix: str = "warmband-", mode: int = 0o700
) -> Iterator[Path]:
    """Make a new folder, and delete it with all in it at the end of the block; one that was renamed meanwhile stays.

    Args:
        parent: folder that it is made in, which is made where it is missing; None is Python's folder for temporary
            files.
        prefix: what its name begins with; the rest of the name is random.
        mode: permissions of the folder, of which the process's umask takes some.

    Raises:
        OSError: it cannot be made.
    """
    place = Path(tempfile.gettempdir() if parent is None else parent)
    place.mkdir(parents=True, exist_ok=True)
    made = place / f"{prefix}{uuid.uuid4().hex}"
    made.mkdir(mode)
    try:
        yield made
    finally:
        _delete_tree(made)


def delete_scratch(folder: str | Path) -> None:
    """Delete a scratch folder, or a folder in one, with all in it, as far as that goes; that it is gone is no error.

    Raises:
        ValueError: neither it nor a folder around it has the mark `HELD` of this user.
    """
    path = Path(folder)
    if not os.path.lexists(path):
        return
    if not any(_is_scratch(each) for each in (path, *path.parents)):
        raise ValueError(f"{path} is no scratch folder of Warmband, so it is not deleted")
    _delete_tree(path)


def delete_abandoned_scratch(place: str | Path, prefix: str) -> None:
    """Delete the scratch folders in a folder whose processes are dead: nobody has a lock on their marks.

    Args:
        place: folder that scratch folders are made in.
        prefix: what their names begin with.
    """
    for folder in Path(place).glob(f"{prefix}*"):
        with suppress(OSError):  # Its process lives, or another process deletes it.
            if not _is_scratch(folder):
                continue
            with (folder / HELD).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete_tree(folder)


def delete_given(folder: str | Path) -> None:
    """Delete a folder with all in it that a user's program gave away, by name, to be deleted.

    Ray Train's `report(..., delete_local_checkpoint_after_upload=True)` is the one case.
    """
    _delete_tree(Path(folder))


def _is_scratch(folder: Path) -> bool:
    """Return whether a folder is this user's own, is no link, and has the mark."""
    with suppress(OSError):
        about = folder.lstat()
        return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and (folder / HELD).is_file()
    return False


def _delete_tree(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # Follows no link.
