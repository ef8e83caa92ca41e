"""Models of programs: what a program wrote to `SM_MODEL_DIR`, unpacked below `WARMBAND_HOME` when it is asked for."""

from __future__ import annotations

import copy
import hashlib
import io
import posixpath
import tarfile
from contextlib import suppress
from pathlib import Path

from trainers import storage
from trainers.archives import FlawedArchiveError, archive_errors
from trainers.checkpoint import Manifest, damaged, load, manifest_of
from trainers.deletion import temporary_folder
from trainers.errors import CheckpointError
from trainers.home import home
from trainers.script.folders import gzipped_tar, holds_files, part_of, unpack, without_owner

_MODEL = "model"
"""The folder of the model in a part."""


def model_folder(checkpoint: str, manifest: Manifest) -> Path:
    """The folder of a trial's model; the same model is unpacked once.

    Args:
        checkpoint: URI of it.
        manifest: of it; `UNKNOWN` reads the one that is there.

    Raises:
        CheckpointError: it is cut short, changed or missing, or the program left no model.
        StorageError: it cannot be read.
    """
    data = _part(checkpoint, manifest)
    place = Path(home(), "models", hashlib.sha256(data).hexdigest()[:32])
    if not place.exists():
        with temporary_folder(place.parent, prefix=".unpacked-") as made:
            unpack(data, made, storage.shown(storage.join(checkpoint, part_of(0))))
            with suppress(OSError):  # Another process was quicker.
                made.rename(place)
    if not holds_files(place / _MODEL):
        raise CheckpointError(
            f"the model of {checkpoint} is empty: the program wrote nothing to SM_MODEL_DIR. If it saves its model "
            "elsewhere, let it save it there; if it saves it at its end, a trial has to come to that end: give the "
            "trainer's length, the name of the hyperparameter that sets it or the number of its reports, or let the "
            "program save with each report"
        )
    return place / _MODEL


def packed_model(checkpoint: str, manifest: Manifest) -> bytes:
    """A trial's model as a tar.gz archive: what the program wrote to `SM_MODEL_DIR`, at its top.

    A link to another file of the model stays one; one to a checkpoint becomes the file. Of a program that left no model
    it is empty, as SageMaker's is.

    Args:
        checkpoint: URI of it.
        manifest: of it; `UNKNOWN` reads the one that is there.

    Raises:
        CheckpointError: it is cut short, changed or missing.
        StorageError: it cannot be read.
    """
    buffer = io.BytesIO()
    try:
        with (
            archive_errors(),
            tarfile.open(fileobj=io.BytesIO(_part(checkpoint, manifest))) as kept,
            gzipped_tar(buffer) as packed,
        ):
            for entry in kept:
                name, _, within = entry.name.partition("/")
                if name == _MODEL and within:
                    _add(packed, kept, entry, within)
    except FlawedArchiveError as error:
        raise damaged(checkpoint, part_of(0), f"it is no archive ({error}), and not the one") from None
    return buffer.getvalue()


def _add(packed: tarfile.TarFile, kept: tarfile.TarFile, entry: tarfile.TarInfo, name: str) -> None:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(entry.name), entry.linkname)) if entry.issym() else ""
    if target and not target.startswith(f"{_MODEL}/"):
        entry = kept.getmember(target)
    renamed = without_owner(copy.copy(entry))
    renamed.name = name
    packed.addfile(renamed, kept.extractfile(entry) if entry.isreg() else None)


def _part(checkpoint: str, manifest: Manifest) -> bytes:
    """Rank 0's part, which holds the model."""
    return load(checkpoint, manifest if manifest.files else manifest_of(checkpoint), part_of(0))
