"""Check that every node of a cluster sees the job's folders and files."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from trainers import storage
from trainers.cluster.placement import has_labels, places
from trainers.cluster.reach import REACH_PREFIX, Reach
from trainers.deletion import delete_empty_folder, delete_file
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from trainers.channels import Channel

LOOK_SECONDS = 60.0
"""Seconds that nodes may take to look; most of it is the start of a process on each."""


@contextmanager
def reaching(
    need: Mapping[str, float],
    channels: Mapping[str, Channel],
    storage_path: str,
    notify: Callable[[str], None],
    selector: Mapping[str, str] | None = None,
) -> Iterator[Reach]:
    """Asks the other nodes that could hold a worker whether they see the driver's files.

    Without such nodes or paths nothing runs. The marker stays for the block, for nodes that
    join.

    Args:
        need: a worker's resources.
        channels: of the workers.
        storage_path: the folder of this job alone that they write to; empty if they write nothing.
        notify: is told which nodes did not answer.
        selector: labels of the nodes that workers may be on; None is all.

    Raises:
        ConfigurationError: a node does not.
    """
    reach = Reach(marker=_marker(storage_path), files=_files(channels))
    made = _write(reach.marker)
    try:
        nodes = _others(need, selector)
        if nodes and not reach.empty:
            _ask(nodes, reach, notify)
        yield reach
    finally:
        _remove(reach.marker, made)


def _ask(nodes: Mapping[str, str], reach: Reach, notify: Callable[[str], None]) -> None:
    """Runs one small task on each node, on all at once."""
    look: Any = ray.remote(num_cpus=0, max_retries=0)(Reach.unseen)
    asked = {}
    for node, address in nodes.items():
        there = NodeAffinitySchedulingStrategy(node, soft=False)
        asked[look.options(scheduling_strategy=there).remote(reach)] = address
    answered, silent = ray.wait(list(asked), num_returns=len(asked), timeout=LOOK_SECONDS)
    wrong: dict[str, list[str]] = {}
    for answer in answered:
        with suppress(ray.exceptions.RayError):  # The node went meanwhile.
            if problem := ray.get(answer):
                wrong.setdefault(problem, []).append(asked[answer])
    for late in silent:
        ray.cancel(late, force=True)
    if wrong:
        raise ConfigurationError(
            "; ".join(f"on {_named(where)}: {problem}" for problem, where in sorted(wrong.items()))
        )
    if silent:
        where = _named([asked[late] for late in silent])
        notify(f"warning: {where} did not say within {LOOK_SECONDS:.0f} s whether storage and files are seen there")


def _others(need: Mapping[str, float], selector: Mapping[str, str] | None) -> dict[str, str]:
    """The addresses of the nodes, beside this one, that could hold a worker."""
    nodes = [node for node in ray.nodes() if has_labels(node, selector)]
    room = places(nodes, need)
    here = ray.get_runtime_context().get_node_id()
    return {
        node["NodeID"]: node["NodeManagerAddress"]
        for node in nodes
        if room.get(node["NodeID"], 0) > 0 and node["NodeID"] != here
    }


def _marker(storage_path: str) -> str:
    folder = storage.local_path(storage_path) if storage_path else None
    return "" if folder is None else os.path.join(os.path.abspath(folder), f"{REACH_PREFIX}{uuid.uuid4().hex}")


def _files(channels: Mapping[str, Channel]) -> dict[tuple[str, str], int]:
    sizes = {}
    for name, channel in channels.items():
        for file in channel.files_to_see():
            path = storage.local_path(file)
            if path is not None and os.path.exists(path):  # Else workers say so.
                sizes[name, path] = os.stat(path).st_size
    return sizes


def _write(marker: str) -> list[Path]:
    """Writes the marker; returns the folders that were made for it, the innermost first."""
    if not marker:
        return []
    folder = Path(marker).parent
    for left in folder.glob(f"{REACH_PREFIX}*"):  # By a driver of this job that was killed.
        delete_file(left)
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    storage.write(marker, b"removed when the job ends")
    return made


def _remove(marker: str, made: Sequence[Path]) -> None:
    """Takes the marker away, and the folders that were made for it, as far as nothing else is in them."""
    with suppress(OSError):
        if marker:
            delete_file(marker)
        for folder in made:
            delete_empty_folder(folder)


def _named(addresses: Sequence[str]) -> str:
    return f"node{'s' if len(addresses) > 1 else ''} {', '.join(sorted(addresses))}"
