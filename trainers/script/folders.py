"""Folders of a program: its code, channels, model and checkpoints, on the disk of a node while a trial is served."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from contextlib import suppress
from pathlib import Path

from trainers.channels import PlacedChannel
from trainers.errors import CheckpointError, ConfigurationError
from trainers.script.environment import Folders
from trainers.script.noted import NOTES

LARGEST_SOURCE = 200 << 20
"""Bytes of a source folder; it is sent to every worker."""
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


def packed(source: Path) -> bytes:
    """A source folder as a tar archive, or a single file of it.

    Raises:
        ConfigurationError: it is too large to be sent to every worker.
    """
    buffer, size = io.BytesIO(), 0
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path in _files_in(source):
            size += path.stat().st_size
            if size > LARGEST_SOURCE:
                raise ConfigurationError(
                    f"source_dir {str(source)!r} holds more than {LARGEST_SOURCE >> 20} MB, and is sent to every "
                    "worker; give a folder with the program alone, and data as channels"
                )
            archive.add(path, arcname=str(path.relative_to(source)), recursive=False)
    return buffer.getvalue()


def _files_in(folder: Path) -> list[Path]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        found += [Path(place, name) for name in sorted(files)]
    return [path for path in found if path.is_file()]  # No sockets, and no links to nowhere.


def unpack(data: bytes, folder: Path) -> None:
    """Puts an archive's files into a folder.

    Raises:
        CheckpointError: it is none.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise CheckpointError(f"an archive of a program's files is cut short or none: {error}; train again") from None


def kept(folders: Folders, notes: bytes | None) -> bytes:
    """What a worker keeps of its node's files: checkpoints; and of rank 0, with what Warmband notes, the model."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        if notes is not None:
            entry = tarfile.TarInfo(NOTES)
            entry.size = len(notes)
            archive.addfile(entry, io.BytesIO(notes))
            _add(archive, Path(folders.model), "model")
        _add(archive, Path(folders.checkpoint), "checkpoints")
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    archive.add(folder, arcname=name, recursive=False)
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):  # A temporary file of a program that was ended.
            if path.is_dir() or path.is_file():
                archive.add(path, arcname=str(Path(name, path.relative_to(folder))), recursive=False)


def put_channel(channel: PlacedChannel, folder: Path) -> None:
    """Puts a channel into a folder of its name: its own files where they are local, or all rows as one CSV file."""
    import numpy as np
    import pandas as pd

    place = folder / channel.name
    place.mkdir(parents=True, exist_ok=True)
    scheme, files = getattr(channel.source, "scheme", None), getattr(channel.source, "files", ())
    if scheme in ("", "file://"):
        for number, file in enumerate(files):
            name = os.path.basename(file.path)
            link = place / name
            (place / f"{number}-{name}" if link.is_symlink() else link).symlink_to(file.path)
        return
    table = channel.read_whole()
    columns = table.feature_names or [f"f{side}" for side in range(np.shape(table.features)[1])]
    frame = pd.DataFrame(np.asarray(table.features), columns=list(columns))
    frame.insert(0, "target" if "target" not in columns else "label", table.labels)
    frame.to_csv(place / f"{channel.name}.csv", index=False)


def clear(folder: Path) -> None:
    """Removes a folder and all in it, as far as that is possible."""
    shutil.rmtree(folder, ignore_errors=True)
