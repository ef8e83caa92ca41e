"""Folders of a program: its code, channels, model and checkpoints, on the disk of a node while a trial is served."""

from __future__ import annotations

import gzip
import io
import os
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from trainers.archives import FlawedArchiveError, archive_errors, extract
from trainers.channels import PlacedChannel, PlacedFolder, about
from trainers.checkpoint import Manifest, manifest_of
from trainers.errors import CheckpointError, ConfigurationError
from trainers.gangs import WorkerContext
from trainers.patient_storage import PatientStorage
from trainers.script.environment import Folders
from trainers.script.noted import NOTES
from trainers.storage import join, shown

LARGEST_SOURCE = 200 << 20
"""Bytes of a source folder; it is sent to every worker."""
LARGEST_TEXT = 4 << 20
"""Bytes of a file that is looked into for a word; programs are shorter."""
_FIRST_TIME = 946_684_800.0
"""Time of the oldest file of a checkpoint in an archive: the beginning of the year 2000."""
_OTHERS = re.compile(
    rb"(?i)rank|world_size|master_addr|distributed|tf_config|multiworker|hosts?\b|machines|mpi4py|horovod|deepspeed"
    rb"|accelerat|lightning|transformers|composer|\b(mpi|jax|ray|dask|fabric|socket)\b"
)
"""Words of a program that works with other workers: variables of its rank, and libraries that train in parallel."""
LEFT_OUT = {".git", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules"}
"""Folders that no program needs."""


def folders_of(root: Path, rank: int) -> Folders:
    """Those of one assignment on one worker; workers of a node have code, checkpoints and output in common.

    The model is rank 0's. Code is a fresh copy for every assignment, and the working directory.

    Args:
        root: holds all of them.
        rank: of the worker.
    """
    own = Path(root, f"worker-{rank}")
    return Folders(
        code=str(root / "code"),
        model=str(root / "model" if rank == 0 else own / "model"),
        output=str(root / "output"),
        output_data=str(root / "output" / "data"),
        input=str(own / "input"),
        config=str(own / "input" / "config"),
        checkpoint=str(root / "checkpoints"),
        reports=str(own / "reports.jsonl"),
    )


def make(folders: Folders) -> None:
    """Makes all of them that are not there."""
    for folder in (folders.code, folders.model, folders.output_data, folders.config, folders.checkpoint):
        Path(folder).mkdir(parents=True, exist_ok=True)


def packed(source: Path, entry_point: str) -> bytes:
    """A source folder as a tar archive: its files, and those that its links lead to.

    Raises:
        ConfigurationError: it cannot be read, is too large to be sent to every worker, or lacks the entry point.
    """
    buffer, size, names = io.BytesIO(), 0, set()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1, dereference=True) as archive:
        for path in files_in(source):
            name = str(path.relative_to(source))
            names.add(name)
            try:
                size += path.stat().st_size
                if size <= LARGEST_SOURCE:
                    archive.add(path, arcname=name, recursive=False)
            except OSError as error:
                raise ConfigurationError(
                    f"source_dir {str(source)!r} has {name!r}, which cannot be read: {error.strerror}; give a folder "
                    "with the program alone, whose files you may read"
                ) from error
            if size > LARGEST_SOURCE:
                raise ConfigurationError(
                    f"source_dir {str(source)!r} holds more than {LARGEST_SOURCE >> 20} MB, and is sent to every "
                    "worker; give a folder with the program alone, and data as channels"
                )
    if os.path.normpath(entry_point) not in names:
        raise no_entry_point(source, entry_point)
    return buffer.getvalue()


def no_entry_point(source: Path, entry_point: str) -> ConfigurationError:
    """Return the error for a program that is not in its source folder."""
    return ConfigurationError(
        f"entry_point {entry_point!r} is no file in source_dir {str(source)!r}; give a path below it"
    )


def mentions(source: Path, words: re.Pattern[bytes]) -> bool:
    """Whether a text in a source folder has one of some words; a file that is large, or cannot be read, may have it."""
    for path in files_in(source):
        try:
            if path.stat().st_size > LARGEST_TEXT or words.search(path.read_bytes()):
                return True
        except OSError:
            return True
    return False


def mentions_others(source: Path) -> bool:
    """Whether a text in a source folder has a word of programs that work with other workers; see `mentions`."""
    return mentions(source, _OTHERS)


def names_in(source: Path, pattern: re.Pattern[bytes]) -> set[str]:
    """Return what a pattern finds in the texts of a source folder; a file that cannot be read has nothing."""
    found: set[str] = set()
    for path in files_in(source):
        with suppress(OSError):
            if path.stat().st_size <= LARGEST_TEXT:
                found |= {name.decode() for name in pattern.findall(path.read_bytes())}
    return found


def files_in(folder: Path) -> list[Path]:
    """Return the files of a source folder, without sockets and broken links; a linked folder counts each time."""
    found = []
    for place, folders, files in os.walk(folder, followlinks=True):
        above = {os.path.realpath(each) for each in (Path(place), *Path(place).parents)}
        folders[:] = sorted(
            name for name in folders if name not in LEFT_OUT and not (above & {os.path.realpath(Path(place, name))})
        )
        found += [Path(place, name) for name in sorted(files)]
    return [path for path in found if path.is_file()]


def unpack(data: bytes, folder: Path, where: str = "of a program's files") -> None:
    """Puts an archive's files into a folder.

    Args:
        data: the archive.
        folder: where its files go.
        where: for errors, the URI that the archive was read from.

    Raises:
        CheckpointError: it is none, or leads out of the folder.
        OSError: the disk does not take it.
    """
    try:
        with archive_errors(), tarfile.open(fileobj=io.BytesIO(data)) as archive:
            extract(archive, str(folder))
    except FlawedArchiveError as error:
        raise CheckpointError(
            f"the archive {where} is cut short or none: {error}; restore the file, or train again"
        ) from None


@contextmanager
def gzipped_tar(buffer: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """Write a compressed archive whose bytes follow from its files: gzip would note when it was made."""
    with (
        gzip.GzipFile("", "wb", 1, buffer, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        yield archive


def without_owner(entry: tarfile.TarInfo, at: float = 0.0) -> tarfile.TarInfo:
    """Leave out of a file's entry who owns it, and give it a time that follows from the files alone.

    Args:
        entry: in an archive.
        at: its time, in unix seconds.
    """
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = at
    return entry


def kept(folders: Folders, notes: bytes | None) -> bytes:
    """What a worker keeps of its node's files: checkpoints; and of rank 0, with what Warmband notes, the model.

    Equal files make equal archives: instead of their times, files of checkpoints have times in the same order, by which
    a program finds its latest, and files of the model have none.

    A link from one kept file to another stays one, from wherever it is unpacked; another link becomes the file that it
    leads to, and one to a folder elsewhere is left out.
    """
    kept_folders = {"checkpoints": folders.checkpoint}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        if notes is not None:
            entry = tarfile.TarInfo(NOTES)
            entry.size = len(notes)
            archive.addfile(entry, io.BytesIO(notes))
            kept_folders["model"] = folders.model
        for name, folder in kept_folders.items():
            times = _times(folder) if name == "checkpoints" else {}
            _add(archive, folder, name, kept_folders, times)
    return buffer.getvalue()


def _times(folder: str) -> dict[int, float]:
    """Of each time of a file in a folder, in nanoseconds, one that says only which files are older."""
    found = set()
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                found.add(os.stat(Path(place, name)).st_mtime_ns)
    return {at: _FIRST_TIME + number for number, at in enumerate(sorted(found))}


def _add(
    archive: tarfile.TarFile, folder: str, name: str, kept_folders: Mapping[str, str], times: Mapping[int, float]
) -> None:
    top = tarfile.TarInfo(name)
    top.type, top.mode = tarfile.DIRTYPE, 0o755
    archive.addfile(top)  # Also of a folder that the program removed.
    for place, inner, files in os.walk(folder):
        inner.sort()
        for path in sorted(Path(place, each) for each in (*inner, *files)):
            arcname = str(Path(name, path.relative_to(folder)))
            with suppress(FileNotFoundError):  # A temporary file of a program that was ended.
                if path.is_symlink():
                    _add_link(archive, path, arcname, kept_folders, times)
                elif path.is_dir() or path.is_file():
                    _add_file(archive, path, arcname, times)


def _add_file(archive: tarfile.TarFile, path: Path, arcname: str, times: Mapping[int, float]) -> None:
    at = times.get(path.stat().st_mtime_ns, 0.0)
    archive.add(path, arcname=arcname, recursive=False, filter=lambda entry: without_owner(entry, at))


def _add_link(
    archive: tarfile.TarFile, path: Path, arcname: str, kept_folders: Mapping[str, str], times: Mapping[int, float]
) -> None:
    target = path.resolve()
    for name, folder in kept_folders.items():
        if target.exists() and target.is_relative_to(os.path.realpath(folder)):
            entry = tarfile.TarInfo(arcname)
            entry.type = tarfile.SYMTYPE
            within = Path(name, target.relative_to(os.path.realpath(folder)))
            entry.linkname = os.path.relpath(within, Path(arcname).parent)
            archive.addfile(entry)
            return
    if target.is_file():
        _add_file(archive, target, arcname, times)


def holds_files(folder: Path) -> bool:
    """Whether there is any file in a folder, or in one of its folders."""
    return any(files for _, _, files in os.walk(folder))


def restore(storage: PatientStorage, checkpoint: str, manifest: Manifest, folder: Path) -> None:
    """Unpacks what a trial had written; every node has the files of all, and where several wrote one, rank 0's counts.

    Raises:
        CheckpointError, StorageError: it cannot be read, or is not what was written.
    """
    parts = manifest.parts if manifest.files else manifest_of(checkpoint).parts
    for part in sorted(parts, key=part_rank, reverse=True):
        unpack(storage.read(checkpoint, manifest, part), folder, shown(join(checkpoint, part)))


def part_of(rank: int) -> str:
    """The name of a worker's part of a checkpoint."""
    return f"worker-{rank}.tar"


def part_rank(part: str) -> int:
    """The worker of a part."""
    return int(part.removeprefix("worker-").removesuffix(".tar"))


def put_channels(
    channels: Iterable[PlacedChannel], root: Path, context: WorkerContext, *, leads: bool
) -> dict[str, str]:
    """Lays out the channels of one worker; returns their folders by name.

    Those that all workers of a node have in common, all but sharded folders, are laid out by the one that leads; the
    others may not read them before it has done so.

    Args:
        channels: of all workers.
        root: the gang's folder on this node.
        context: this worker's.
        leads: whether it is the one of its node.

    Raises:
        DataError, StorageError: naming the channel and what is wrong.
    """
    places = {}
    for channel in channels:
        source = channel.source
        if not isinstance(source, PlacedFolder):
            places[channel.name] = str(root / "data" / channel.name)
            if leads:
                _put_rows(channel, root / "data" / channel.name)
            continue
        place = root / (f"data-{context.rank}" if source.sharded else "data") / channel.name
        places[channel.name] = source.where if source.in_place else str(place)
        if leads or source.sharded:
            place.parent.mkdir(parents=True, exist_ok=True)
            with about(channel.name):
                source.lay_out(place, context.rank, context.world_size)
    return places


def spread_of(channels: Iterable[PlacedChannel]) -> dict[str, str]:
    """How a channel's files came to the workers, in SageMaker's words, by name; those of rows are whole on each."""
    return {each.name: each.source.distribution for each in channels if isinstance(each.source, PlacedFolder)}


def _put_rows(channel: PlacedChannel, place: Path) -> None:
    """Puts a channel into a folder: its own files where they are local, or all rows as one CSV file."""
    import numpy as np
    import pandas as pd

    place.mkdir(parents=True, exist_ok=True)
    if links := linked_files(channel.source):
        for name, path in links.items():
            (place / name).symlink_to(path)
        return
    table = channel.read_whole()
    columns = header_of(table.feature_names, np.shape(table.features)[1])
    frame = pd.DataFrame(np.asarray(table.features), columns=list(columns[1:]))
    frame.insert(0, columns[0], table.labels)
    frame.to_csv(place / f"{channel.name}.csv", index=False)


def linked_files(source: object) -> dict[str, str]:
    """Return the paths of the local files of a channel of rows, by their names in its folder; empty for other rows."""
    links: dict[str, str] = {}
    if getattr(source, "scheme", None) in ("", "file://"):
        for number, file in enumerate(getattr(source, "files", ())):
            name = os.path.basename(file.path)
            links[f"{number}-{name}" if name in links else name] = file.path
    return links


def header_of(names: Sequence[str] | None, features: int) -> tuple[str, ...]:
    """Return the names of columns of rows that a program gets as one CSV file: the target's, then those of features."""
    names = tuple(names or (f"f{side}" for side in range(features)))
    return ("target" if "target" not in names else "label", *names)
