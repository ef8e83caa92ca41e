"""Folders of files as channels: made, opened, and laid out for the workers of a gang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainers import Channel, Folder
from trainers.channels import PlacedFolder


def filled(folder: Path, files: dict[str, str]) -> Path:
    """A folder with files of these texts."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def opened(folder: Path | str, distribution: Any = "FullyReplicated") -> Channel:
    """The channel "train" of a folder."""
    return Channel.of(Folder(folder, distribution), name="train")


def laid_out(folder: Path | str, to: Path, workers: int) -> list[dict[str, str]]:
    """Return the files that each worker of a gang finds in its part of a folder."""
    placed = opened(folder, "ShardedByS3Key").place(workers).source
    assert isinstance(placed, PlacedFolder)
    for rank in range(workers):
        placed.lay_out(to / str(rank), rank, workers)
    return [contents(to / str(rank)) for rank in range(workers)]


def contents(folder: Path) -> dict[str, str]:
    """Texts of files by their names from a folder on."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
