"""Archives of tar that others made: extracted within a folder, and one kind of error for all that is wrong with one."""

from __future__ import annotations

import errno
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError

_OF_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EILSEQ}
"""Errors of the file system that come of an archive's names, and not of the disk."""


class FlawedArchiveError(ValueError):
    """It is no whole archive, leads out of its folder, or has names that cannot be."""


@contextmanager
def archive_errors() -> Iterator[None]:
    """Raise `FlawedArchiveError` for whatever Python's `tarfile` raises of a flawed archive.

    An error of the disk, such as no space, stays an `OSError`.
    """
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, LZMAError) as error:
        raise FlawedArchiveError(_first_line(error)) from None
    except (KeyError, ValueError, RecursionError, OverflowError) as error:
        raise FlawedArchiveError(f"{type(error).__name__}: {_first_line(error)}") from None
    except OSError as error:
        if error.errno is None or error.errno in _OF_NAMES:  # gzip has errors without a number.
            raise FlawedArchiveError(_first_line(error)[:200]) from None
        raise


def extract(archive: tarfile.TarFile, folder: str, most: int | None = None) -> None:
    """Extract an archive into a folder: files, folders and links within it.

    Args:
        archive: to read, from its beginning.
        folder: where its files go.
        most: bytes that all files may have together; an archive with more is refused before it is extracted, or
            decompressed to its end.

    Raises:
        FlawedArchiveError: it is cut short or no archive, leads out of the folder, or has more bytes.
        OSError: the disk does not take it.
    """
    with archive_errors():
        size = 0
        for member in archive if most is not None else ():
            size += member.size
            if most is not None and size > most:
                raise FlawedArchiveError(f"it has more than {most >> 20} MiB of files")
        archive.extractall(folder, filter="data")


def _first_line(error: BaseException) -> str:
    return next((line.strip(" :") for line in str(error).splitlines() if line.strip()), type(error).__name__)
