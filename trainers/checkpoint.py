"""Checkpoints of one file or several: a manifest of sizes and digests, by which a whole one is known.

One of several files is a folder. Its workers write their files into it, and one of them the manifest, last: a folder
without a manifest is no checkpoint. What is removed loses its manifest first.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from trainers import storage
from trainers.errors import CheckpointError, DataError, StorageError, WarmbandError

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
"""The file of a folder that says which others belong to it."""

PROFILES = "profiles"
"""Name of the folder beside the trials' folders for traces of their steps."""

TRACE_ENDING = ".json.gz"
"""What the name of a trial's trace ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of a checkpoint.

    Args:
        name: in its folder.
        size: in bytes.
        digest: SHA-256 of its bytes, in hex; empty where it is not known, in records of an older Warmband.
    """

    name: str
    size: int
    digest: str = ""

    @classmethod
    def of(cls, name: str, data: bytes | memoryview) -> Self:
        """A file that holds `data`."""
        return cls(name=name, size=len(data), digest=hashlib.sha256(data).hexdigest())

    def flaw(self, data: bytes) -> str:
        """What is wrong with `data`, which were read from it, in a few words; empty where nothing is."""
        if len(data) != self.size:
            return f"it has {len(data)} of the {self.size} bytes"
        if self.digest and hashlib.sha256(data).hexdigest() != self.digest:
            return "it has other bytes than those"
        return ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a checkpoint, of a folder its manifest too; none where nothing is known of them."""

    files: tuple[File, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(file.size for file in self.files)

    @property
    def has_digests(self) -> bool:
        """Whether there are files, and the digest of each is known, so that a changed one is not read."""
        return bool(self.files) and all(file.digest for file in self.files)

    @property
    def is_folder(self) -> bool:
        """Whether the checkpoint is a folder of several files."""
        return any(file.name == MANIFEST for file in self.files)

    @property
    def parts(self) -> tuple[str, ...]:
        """What `load` takes as `part`, of each file that holds state."""
        return tuple(file.name for file in self.files if file.name != MANIFEST) if self.is_folder else ("",)

    def located(self, checkpoint: str) -> dict[str, File]:
        """The files of a checkpoint by their URIs."""
        return {storage.join(checkpoint, file.name) if self.is_folder else checkpoint: file for file in self.files}

    def to_json(self) -> dict[str, Any]:
        """Sizes and digests by name."""
        return {file.name: {"size": file.size, "digest": file.digest} for file in self.files}

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any]) -> Self:
        """The manifest that `to_json` made this of."""
        return cls(tuple(File(name=name, **facts) for name, facts in recorded.items()))


_LARGE = 1 << 18
"""Bytes whose digest takes longer than a thread takes to start."""

_CHECKPOINT = re.compile(r"(\d{6}|[1-9]\d{6})(\.\d+)?(\.(ubj|pt|tar))?")
"""Names of checkpoints: the units trained in six digits (seven from a million on), which time they were trained after
the first, and the ending of the trainer."""

_PART = re.compile(r"manifest\.json|index\.json|state\.pt|(worker|rank|part)-\d+(\.[a-z]+)?|shard-\d{5}-[0-9a-f]{8}")
"""Names that workers give to files of a checkpoint of several. One of another name is known by its manifest alone."""

UNKNOWN = Manifest()
"""Of a checkpoint that is known by its URI alone."""


def sized(checkpoint: str, size: int) -> Manifest:
    """The manifest of one file of which the size alone is known: older records have no digests."""
    return Manifest((File(name=_trial_and_name(checkpoint)[1], size=size),)) if size else UNKNOWN


def save(checkpoint: str, data: bytes) -> Manifest:
    """Writes a checkpoint of one file, whole or not at all.

    Raises:
        StorageError: it cannot be written.
    """
    return Manifest((_written(checkpoint, data),))


def save_part(checkpoint: str, name: str, data: bytes | memoryview) -> File:
    """Writes one file of a checkpoint of several, whole or not at all.

    Raises:
        StorageError: it cannot be written.
    """
    return _written(checkpoint, data, name)


def seal(checkpoint: str, files: Iterable[File]) -> Manifest:
    """Writes the manifest of a checkpoint whose files are all written, and removes others that are in its folder.

    Args:
        checkpoint: URI of the folder.
        files: as `save_part` returned them, on all workers.

    Raises:
        StorageError: it cannot be written, or the folder not be tidied.
    """
    parts = Manifest(tuple(files))
    named = {MANIFEST, *(file.name for file in parts.files)}
    for left in storage.names(checkpoint):
        if left not in named and _is_part(left):
            _remove_file(storage.join(checkpoint, left))
    raw = json.dumps(parts.to_json()).encode()
    return Manifest((*parts.files, save_part(checkpoint, MANIFEST, raw)))


def manifest_of(checkpoint: str) -> Manifest:
    """The manifest of a checkpoint of several files, as it stands beside them.

    Raises:
        DataError: it is not there, or is none: not all files were written, or they are being removed.
        StorageError: it cannot be read.
    """
    uri = storage.join(checkpoint, MANIFEST)
    raw = storage.read(uri)
    try:
        return Manifest((*Manifest.from_json(json.loads(raw)).files, File.of(MANIFEST, raw)))
    except (ValueError, TypeError, AttributeError):
        raise _damaged(uri, "it is no manifest") from None


def looked_up(checkpoint: str) -> Manifest:
    """The manifest of a checkpoint that is known by its URI alone; `UNKNOWN` where it is one file.

    Raises:
        DataError, StorageError: see `manifest_of`.
    """
    return manifest_of(checkpoint) if storage.size(checkpoint) is None and storage.is_there(checkpoint) else UNKNOWN


def load(checkpoint: str, manifest: Manifest = UNKNOWN, part: str = "") -> bytes:
    """The bytes of a checkpoint's file.

    Args:
        checkpoint: URI of the checkpoint.
        manifest: of it, where it is known: what is read has to be what was written.
        part: name of the file, where it is one of several.

    Raises:
        CheckpointError: there is no such file, or it is cut short or changed; it names the file and its trial.
        StorageError: it cannot be read.
    """
    uri = storage.join(checkpoint, part) if part else checkpoint
    data = storage.read(uri)
    file = manifest.located(checkpoint).get(uri)
    if file is not None and (flaw := file.flaw(data)):
        raise _damaged(uri, f"{flaw} that trial {_trial_and_name(checkpoint)[0]!r} wrote")
    return data


def load_span(checkpoint: str, part: str, at: int, size: int) -> bytes:
    """Bytes of one file of a checkpoint of several, which are compared with no digest.

    Args:
        checkpoint: URI of the checkpoint.
        part: name of the file.
        at: where they begin in it.
        size: how many there are.

    Raises:
        CheckpointError: there is no such file, or it ends before; it names the file and its trial.
        StorageError: it cannot be read.
    """
    data = storage.read(storage.join(checkpoint, part), at, size)
    if len(data) != size:
        raise damaged(checkpoint, part, f"it ends before the byte {at + size}")
    return data


def damaged(checkpoint: str, part: str, why: str) -> CheckpointError:
    """The error about a file of a checkpoint of several that is not what its trial wrote."""
    return _damaged(storage.join(checkpoint, part), f"{why} that trial {trial_of(checkpoint)!r} wrote")


def check_sizes(checkpoint: str, manifest: Manifest) -> None:
    """Compares the sizes of a checkpoint's files with what was written, without reading them.

    Raises:
        CheckpointError: a file is missing, or has another size; it names the file and its trial.
        StorageError: it cannot be looked at.
    """
    for uri, file in manifest.located(checkpoint).items():
        size = storage.size(uri)
        if size is None:
            raise CheckpointError(
                f"checkpoint {storage.shown(uri)!r} of trial {trial_of(checkpoint)!r} is not there; was its folder "
                "removed, or is it on another node?"
            )
        if size != file.size:
            raise _damaged(uri, f"it has {size} of the {file.size} bytes that trial {trial_of(checkpoint)!r} wrote")


def check(checkpoint: str, manifest: Manifest) -> None:
    """Reads all files of a checkpoint, and compares them with what was written.

    Raises:
        DataError, StorageError: see `load`.
    """
    for part in manifest.parts if manifest.files else ():
        load(checkpoint, manifest, part)


def is_there(checkpoint: str, manifest: Manifest) -> bool:
    """Whether a checkpoint is there with all its files, as far as their sizes tell.

    Raises:
        StorageError: it cannot be looked at, or the folder of the job is not there.
    """
    storage.check_job_folder(checkpoint)
    if manifest.files:
        there = all(storage.size(uri) == file.size for uri, file in manifest.located(checkpoint).items())
    else:
        there = storage.is_there(checkpoint)
    if not there:
        storage.check_job_folder(checkpoint)  # The disk may have gone while it was looked at.
    return there


def is_whole(checkpoint: str, manifest: Manifest) -> bool:
    """Whether a checkpoint is there with all its files, and these hold what was written. It reads all of them.

    Raises:
        StorageError: as `is_there`.
    """
    if not is_there(checkpoint, manifest):
        return False
    try:
        check(checkpoint, manifest)
    except CheckpointError:
        return False
    return True


def remove(checkpoint: str) -> None:
    """Removes the files of a checkpoint, or what is left of them; that it is not there is no error.

    What else is in its folder stays, and so does the folder then.

    Raises:
        DataError: it is there and cannot be removed.
    """
    if storage.is_link(checkpoint):
        return
    if storage.size(checkpoint) is not None:
        storage.delete(checkpoint)
        return
    held = storage.names(checkpoint)
    try:
        listed = {file.name for file in manifest_of(checkpoint).files} if MANIFEST in held else set()
    except StorageError:
        raise
    except DataError:
        listed = set()
    for name in (MANIFEST, *held):
        if name in held and (name in listed or _is_part(name)):
            _remove_file(storage.join(checkpoint, name))
    storage.delete_if_empty(checkpoint)


def remove_trial(folder: str, kept: Container[str] = ()) -> None:
    """Removes the checkpoints in a trial's folder, whole and begun ones, and the folder if nothing else is in it.

    Args:
        folder: URI of the trial's folder.
        kept: URIs of checkpoints in it that stay.

    Raises:
        DataError: one is there and cannot be removed.
    """
    if storage.is_link(folder):
        return
    for name in storage.names(folder):
        uri = storage.join(folder, name)
        if is_checkpoint(name) and uri not in kept:
            remove(uri)
        elif is_checkpoint(storage.drafted(name)):
            _remove_file(uri)
    storage.delete_if_empty(folder)


@contextmanager
def passing_folder(uri: str, trial: str) -> Iterator[None]:
    """Make a folder for the length of a block, in which one trial is trained; its checkpoints go with the block.

    Args:
        uri: of the folder.
        trial: id of the trial.

    Raises:
        StorageError: it cannot be made.
    """
    storage.make_folder(uri)
    try:
        yield
    finally:
        try:
            remove_trial(storage.join(uri, trial))
            storage.delete_if_empty(uri)
        except WarmbandError as error:
            logger.debug("%s stays: %r", uri, error)


def is_checkpoint(name: str) -> bool:
    """Return whether a file or folder of that name in a trial's folder is a checkpoint: "000027.ubj" say."""
    return _CHECKPOINT.fullmatch(name) is not None


def _is_part(name: str) -> bool:
    """Return whether a file of that name in a checkpoint's folder is one of its files, or a draft of one."""
    return _PART.fullmatch(storage.drafted(name) or name) is not None


def _remove_file(uri: str) -> None:
    """Removes a file that bears a name of ours; a folder or a link of that name was made by somebody else."""
    if not storage.is_link(uri) and storage.size(uri) is not None:
        storage.delete(uri)


def trial_of(checkpoint: str) -> str:
    """The trial in whose folder a checkpoint is."""
    return _trial_and_name(checkpoint)[0]


def _written(checkpoint: str, data: bytes | memoryview, part: str = "") -> File:
    """Writes a file; the digest of a large one is taken meanwhile, since neither holds Python's lock."""
    name = part or _trial_and_name(checkpoint)[1]
    if len(data) < _LARGE:
        storage.save(checkpoint, data, part)
        return File.of(name, data)
    with ThreadPoolExecutor(1, "checkpoint digest") as aside:
        file = aside.submit(File.of, name, data)
        storage.save(checkpoint, data, part)
    return file.result()


def _trial_and_name(checkpoint: str) -> tuple[str, str]:
    """Of `JOB/TRIAL/FILE`."""
    *_, trial, name = ["", *checkpoint.partition("?")[0].split("/")]
    return trial, name


def _damaged(uri: str, why: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint {storage.shown(uri)!r} is cut short or no checkpoint: {why}; restore the file, or train again"
    )
