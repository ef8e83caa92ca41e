"""Checkpoint files on local disks and object stores: written whole or not at all.

A place is a local path, or a URI that pyarrow knows: `file://`, `s3://`, `gs://`. Options stand behind a question mark,
as in `s3://bucket/jobs?region=eu-central-1`; they stay behind it when parts are joined.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trainers import deletion, object_stores
from trainers.errors import CheckpointError, ConfigurationError, DataError, StorageError

CHECK_SECONDS = 30.0
"""How long a storage path may take to answer before a job starts."""

_LONGEST = 240

# Behind a colon, slashes too: they are common in secret keys.
_USER = re.compile(r"://(?:[^/?]*|[^/?:]*:[^?]*)@")
_SECRET_OPTIONS = re.compile(
    r"(?i)([?&](?:[\w-]*(?:access_?key|secret|account_?key|token|password|credential|signature)[\w-]*|sig)=)[^&]*"
)

_PROBE = re.compile(r"(\.)?\.warmband-[0-9a-f]{32}(\.[0-9a-f]{32})?")
_DRAFT = re.compile(r"\.(.+)\.[0-9a-f]{32}")

# What the messages of pyarrow and of the system say, and what helps.
_REMEDIES = (
    (
        r"NO_SUCH_BUCKET|[Bb]ucket.*(does not exist|not found)|NOT_FOUND: .*function=CreateResumableUpload",
        "there is no such bucket: make it, or name another",
    ),
    (
        r"[Cc]redentials|INVALID_ACCESS_KEY|SIGNATURE|UNAUTHENTICATED|OAuth2|metadata server",
        "give credentials, on every node: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "GOOGLE_APPLICATION_CREDENTIALS",
    ),
    (r"ACCESS_DENIED|PERMISSION_DENIED|Forbidden|HTTP status 403|Permission denied", "it needs read and write access"),
    (r"No space left|quota", "its disk is full: free some of it, or name another place"),
    (r"Read-only file system", "it is read-only: name another place"),
    (r"NETWORK_CONNECTION|resolve host|Could not connect", "nothing answers there: check the endpoint and the network"),
    (r"Not a directory|Is a directory|File exists", "a file stands where a folder should, or the other way round"),
    (r"Unrecognized filesystem", "give a local path, or a URI that begins with file://, s3:// or gs://"),
    (r"Expected a local filesystem path|Cannot parse|Unexpected query", "correct the URI"),
)


def read(uri: str, at: int = 0, size: int | None = None) -> bytes:
    """Bytes of a file: all of them, or `size` from the one numbered `at` on, fewer where it ends before.

    Raises:
        CheckpointError: there is no such file.
        StorageError: it cannot be read.
    """
    with _explained(uri, "read"):
        try:
            if _is_local(uri):
                with open(uri, "rb") as file:
                    file.seek(at)
                    return file.read(size)
            return object_stores.read(*object_stores.kept_filesystem_of(uri), at, size)
        except FileNotFoundError as error:
            raise CheckpointError(
                f"checkpoint {shown(uri)!r} is not there; was its folder removed, or is it on another node?"
            ) from error


def write(uri: str, data: bytes | memoryview) -> None:
    """Writes a file so that no reader ever sees a part of it: local files by renaming, object stores do so anyway.

    Raises:
        StorageError: it cannot be written.
    """
    with _explained(uri, "written"):
        _write(uri, data)


def save(checkpoint: str, data: bytes | memoryview, part: str = "") -> None:
    """Writes a checkpoint, `JOB/TRIAL/FILE`, or a part of one, as `write` does, where its job has a folder.

    The folder of its trial is made, none above that: the disk may be unmounted between two looks.

    Raises:
        StorageError: the job's folder is not there, or the file cannot be written.
    """
    check_job_folder(checkpoint)
    with _explained(checkpoint, "written"):
        _write(join(checkpoint, part) if part else checkpoint, data, 1 + bool(part))


def size(uri: str) -> int | None:
    """The bytes of a file; None where there is none, or a folder.

    Raises:
        StorageError: it cannot be looked at, or it is a link to what is not there, or neither a file nor a folder.
    """
    with _explained(uri, "looked at"):
        if _is_local(uri):
            return _local_size(Path(uri))
        from pyarrow.fs import FileType

        filesystem, path = object_stores.kept_filesystem_of(uri)
        info = filesystem.get_file_info(path)
        return int(info.size) if info.type == FileType.File else None


def _local_size(path: Path) -> int | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(errno.ENOENT, f"it is a link to {os.readlink(path)!r}, which is not there") from None
        return None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise OSError(errno.EINVAL, "it is no file")
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def delete(uri: str) -> None:
    """Removes a file; that it is not there is no error.

    Raises:
        DataError: it is there and cannot be removed.
    """
    with _explained(uri, "removed"):
        if (path := local_path(uri)) is not None:
            deletion.delete_file(path)
        else:
            deletion.delete_object(*object_stores.kept_filesystem_of(uri))


def delete_if_empty(uri: str) -> bool:
    """Removes a folder that holds nothing; returns whether it is gone. One that holds something stays.

    Raises:
        DataError: it cannot be looked at, or is empty and cannot be removed.
    """
    with _explained(uri, "removed"):
        if (path := local_path(uri)) is not None:
            return deletion.delete_empty_folder(path)
        return deletion.delete_empty_prefix(*object_stores.kept_filesystem_of(uri))


def drafted(name: str) -> str:
    """Return the name of the file that a draft was to become, which a killed process left; empty for other names."""
    found = _DRAFT.fullmatch(name)
    return found[1] if found else ""


def is_probe(name: str) -> bool:
    """Return whether a file of that name is one that `check_writable` writes, and leaves where it is killed."""
    return _PROBE.fullmatch(name) is not None


def is_link(uri: str) -> bool:
    """Return whether a place is a link on a disk. Warmband makes none in a job's folder, so it leads to other files."""
    path = local_path(uri)
    return path is not None and os.path.islink(path)


def names(uri: str) -> list[str]:
    """The names of what a folder holds, sorted; none where it is not there.

    Raises:
        DataError: it cannot be listed.
    """
    with _explained(uri, "listed"), suppress(FileNotFoundError):
        if _is_local(uri):
            return sorted(os.listdir(uri))
        return object_stores.names(*object_stores.kept_filesystem_of(uri))
    return []


def is_there(uri: str) -> bool:
    """Whether there is a file or a folder of that name; in object stores, whether there is anything in it.

    Raises:
        StorageError: it cannot be looked at.
    """
    with _explained(uri, "looked at"):
        if _is_local(uri):
            return os.path.lexists(uri)
        from pyarrow.fs import FileType

        filesystem, path = object_stores.kept_filesystem_of(uri)
        return bool(filesystem.get_file_info(path).type != FileType.NotFound)


def make_folder(uri: str) -> None:
    """Makes a folder, with those that it is in; object stores have none.

    Raises:
        StorageError: it cannot be made.
    """
    path = local_path(uri)
    if path is not None:
        with _explained(uri, "made"):
            Path(path).mkdir(parents=True, exist_ok=True)


def check_job_folder(checkpoint: str) -> None:
    """Refuses a checkpoint, `JOB/TRIAL/FILE`, whose job has no folder: its disk is not mounted, or somebody moved it.

    A folder made anew would hide that, and hold half of the job's models.

    Raises:
        StorageError: the folder is not there.
    """
    path = local_path(checkpoint)
    if path is None:
        return
    folder = Path(path).parent.parent
    if not folder.is_dir():
        raise StorageError(
            f"{str(folder)!r}, the folder of checkpoints, is not there; mount its disk, or put the folder back"
        )


def check_writable(uri: str) -> None:
    """Writes a file into a folder, which need not be there yet, and takes it and what was made for it away again.

    Only a bucket stays where its URI has `allow_bucket_creation=true`, and the empty object of a folder.

    Raises:
        ConfigurationError: nothing can be written there, or nobody answers within `CHECK_SECONDS`.
    """
    try:
        _within(CHECK_SECONDS, lambda: _probe(uri))
    except DataError as error:
        raise ConfigurationError(f"storage_path {error}") from error
    except TimeoutError as error:
        raise ConfigurationError(
            f"storage_path {shown(uri)!r} did not answer within {CHECK_SECONDS:.0f} s; check the endpoint, the network "
            "and the credentials, or name another"
        ) from error


def join(base: str, *parts: str) -> str:
    """`base` and `parts` as one path or URI; the options of a URI stay at its end."""
    place, mark, options = (base, "", "") if _is_local(base) else base.partition("?")
    return "/".join([place.rstrip("/"), *parts]) + mark + options


def local_path(uri: str) -> str | None:
    """The path of a place on disks that this machine has; None for object stores."""
    if _is_local(uri):
        return uri
    split = urlsplit(uri)
    return unquote(split.path) if split.scheme == "file" else None


def beside(uri: str, stem: str) -> str:
    """A file in the folder of another, with its ending."""
    place, mark, options = (uri, "", "") if _is_local(uri) else uri.partition("?")
    folder, slash, name = place.rpartition("/")
    return folder + slash + stem + "".join(Path(name).suffixes) + mark + options


def absolute(uri: str) -> str:
    """The same place for a process with another working directory."""
    return os.path.abspath(uri) if _is_local(uri) else uri


def shown(uri: str) -> str:
    """A place as messages may show it: without keys and passwords."""
    return _SECRET_OPTIONS.sub(r"\1***", _USER.sub("://***@", uri))


def check_no_credentials(uri: str, field: str) -> None:
    """Refuses a URI that holds keys or a password: places are recorded, shown and handed to every worker.

    Args:
        uri: a path or URI.
        field: what to call it in the error.

    Raises:
        ConfigurationError: it does; the message shows none of them.
    """
    if _is_local(uri):
        return
    user = _USER.search(uri)
    secret = user is not None and (":" in user[0][3:] or (uri.startswith("s3:") and user[0] != "://@"))
    if secret or _SECRET_OPTIONS.search(uri):
        raise ConfigurationError(
            f"{field} {shown(uri)!r} holds credentials, and would be recorded with them; leave them out, and give them "
            "on every node by the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, set before Ray starts), "
            "by a profile in ~/.aws/credentials, by GOOGLE_APPLICATION_CREDENTIALS, or by the machine's own role"
        )


def _write(uri: str, data: bytes | memoryview, folders: int = 0) -> None:
    if _is_local(uri):
        _write_local(Path(uri), data, folders)
        return
    filesystem, path = object_stores.kept_filesystem_of(uri)
    if filesystem.type_name == "local":
        _write_local(Path(path), data, folders)
        return
    with filesystem.open_output_stream(path, compression=None) as stream:  # Else a name in .gz compresses it.
        stream.write(data)


def _write_local(path: Path, data: bytes | memoryview, folders: int) -> None:
    for folder in reversed(path.parents[: folders or 1]):  # 0: all that it is in
        folder.mkdir(parents=not folders, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    finally:
        deletion.delete_file(draft)


def _probe(uri: str) -> None:
    file = join(uri, f".warmband-{uuid.uuid4().hex}")
    made = _missing(uri)
    try:
        with _explained(uri, "written"):
            try:
                _write(file, b"may be removed")
            except OSError:
                if not _make_bucket(uri):
                    raise
                _write(file, b"may be removed")
            delete(file)
    finally:
        with suppress(DataError):
            for folder in reversed(made):  # Another job may have begun in one of them meanwhile.
                delete_if_empty(folder)


def _missing(uri: str) -> list[str]:
    """The folders on the way to `uri` that are not there yet, the outermost first; none where that cannot be told."""
    place, mark, options = (uri, "", "") if _is_local(uri) else uri.partition("?")
    root = 1 if _is_local(uri) else 3  # Behind the slashes of the scheme stands the bucket, or nothing.
    parts = place.rstrip("/").split("/")
    folders = ["/".join(parts[:count]) + mark + options for count in range(root + 1, len(parts) + 1)]
    with suppress(DataError):
        return [folder for folder in folders if not is_there(folder)]
    return []


def _make_bucket(uri: str) -> bool:
    """Makes the bucket of a URI that allows it; returns whether it did."""
    if "allow_bucket_creation=true" not in urlsplit(uri).query:
        return False
    filesystem, path = object_stores.kept_filesystem_of(uri)
    filesystem.create_dir(path.partition("/")[0])
    return True


def _within(seconds: float, call: Callable[[], None]) -> None:
    """Calls, and gives up after so long: object stores' own clients try again for minutes."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=run, name="storage check", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if problems:
        raise problems[0]


@contextmanager
def _explained(uri: str, done: str) -> Iterator[None]:
    """Makes one of our errors of what the system or pyarrow raises: what the system refuses, it may do later."""
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        kind = StorageError if isinstance(error, OSError) else DataError
        reason = str(getattr(error, "strerror", None) or error).strip() or type(error).__name__
        remedy = next((help for words, help in _REMEDIES if re.search(words, reason)), "check the path and its access")
        # Pyarrow repeats the URI, which may be one of a file that is tried out.
        first = shown(reason.splitlines()[0].partition(" in URI: ")[0])
        if len(first) > _LONGEST:
            first = f"{first[:_LONGEST]}..."
        raise kind(f"{shown(uri)!r} cannot be {done}: {first}; {remedy}") from error


def _is_local(uri: str) -> bool:
    return "://" not in uri
