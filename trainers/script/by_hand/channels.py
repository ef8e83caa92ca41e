"""Channels of a command by hand: folders of this machine, or what the user has to put into one first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from trainers.channels import Channel, OpenedFolder
from trainers.script.by_hand.words import RUN, folder_in, quoted, variable_named
from trainers.script.folders import header_of, linked_files
from trainers.storage import shown

MOST_NAMES = 50
"""Names of files that a note lists."""


@dataclass(slots=True, kw_only=True)
class LaidOut:
    """Channels, as the commands of all workers have them.

    Args:
        folders: of each worker, by rank: the folder of each channel.
        made: commands of a shell that make a folder, by what stands for it.
        notes: a comment about a folder that the user has to give, by what stands for it.
        distributions: how a channel's files come to the workers, where that is not whole to each.
    """

    folders: tuple[dict[str, str], ...]
    made: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    distributions: dict[str, str] = field(default_factory=dict)


def laid_out(channels: Mapping[str, Channel], workers: int) -> LaidOut:
    """Return what the workers find as channels.

    Args:
        channels: by name.
        workers: how many there are.
    """
    found = LaidOut(folders=tuple({} for _ in range(workers)))
    for name, channel in channels.items():
        if isinstance(channel.source, OpenedFolder):
            _lay_folder(found, name, channel.source, workers)
        else:
            _lay_rows(found, name, channel)
    return found


def _lay_folder(found: LaidOut, name: str, source: OpenedFolder, workers: int) -> None:
    placed = source.place(workers)
    found.distributions[name] = placed.distribution
    if not placed.sharded:
        where = shown(placed.where)
        here = placed.where if placed.in_place else _given(found, name, f"with a copy of all files below {where}")
        for folders in found.folders:
            folders[name] = here
        return
    for rank, (folders, part) in enumerate(zip(found.folders, placed.parts(workers), strict=True)):
        own = [placed.names[file] for file in part]
        count = f"{len(own)} of the {len(placed.names)} files below {shown(placed.where)}"
        listed = f": {shlex.join(own)}" if len(own) <= MOST_NAMES else f", the part of worker {rank} of {workers}"
        folders[name] = _given(found, name, f"with {count}{listed}", worker=rank)


def _lay_rows(found: LaidOut, name: str, channel: Channel) -> None:
    if links := linked_files(channel.source):
        folder = f"{RUN}/data/{name}"
        steps = [f"mkdir -p {quoted(folder)}"]
        steps += [f"ln -s {quoted(os.path.abspath(path))} {quoted(f'{folder}/{link}')}" for link, path in links.items()]
        found.made[folder] = " && ".join(steps)
    else:
        heading = channel.source.heading
        names = header_of(heading.names, heading.count) if heading else ()
        columns = f"the columns {', '.join(map(repr, names))}" if names else "the target in the first column"
        rows = f"with {name}.csv, which has all rows of the channel under a line of names: {columns}"
        folder = _given(found, name, rows)
    for folders in found.folders:
        folders[name] = folder


def _given(found: LaidOut, name: str, what: str, worker: int | None = None) -> str:
    """Return what stands for a folder that the user has to give."""
    variable = variable_named(f"SM_CHANNEL_{name.upper()}" + ("" if worker is None else f"_{worker}"))
    text = " ".join(what.split("\n"))  # A comment ends with its line.
    found.notes[folder_in(variable)] = f"# First: export {variable}=FOLDER, a folder {text}"
    return folder_in(variable)
