"""Checkpoints of Ray Train's form, folders of files, as one tar file, or as one for each worker that reported files."""

from __future__ import annotations

import atexit
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trainers import storage
from trainers.archives import FlawedArchiveError, archive_errors
from trainers.checkpoint import Manifest, looked_up
from trainers.errors import CheckpointError, TrialError
from trainers.metrics import flat
from trainers.process import Scratch

STATE = ".warmband.json"
"""The member of rank 0's tar file that says where the trial stands; it is no file of the function's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a trial stands.

    Args:
        reported: units that were reported when the files were; 0 without any, and the function begins anew.
        reached: units that the trial has: `reported`, or more where later reports came without files.
        metrics: of the last unit.
        ended: the function has returned: there is nothing to train any more.
        first: metrics of the trial's first unit.
        reads: the function called `ray.train.get_checkpoint` before its first report.
    """

    reported: int
    reached: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    ended: bool = False
    first: Mapping[str, float] = field(default_factory=dict)
    reads: bool = True


def packed(folder: str | Path | None) -> bytes:
    """A folder's files as a tar file, uncompressed; None holds none."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(Path(folder).iterdir()) if folder is not None else ():
            if path.name != STATE:  # It would be another trial's, whose files were copied.
                tar.add(path, arcname=path.name)
    return buffer.getvalue()


def with_state(data: bytes, state: State) -> bytes:
    """A tar file with the state behind its files."""
    buffer, raw = io.BytesIO(data), json.dumps(asdict(state)).encode()
    member = tarfile.TarInfo(STATE)
    member.size = len(raw)
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        tar.addfile(member, io.BytesIO(raw))
    return buffer.getvalue()


def unpacked(data: bytes, folder: str | Path, where: str) -> State | None:
    """Writes the files of a tar file into a folder; returns the state where it has one.

    Raises:
        CheckpointError: it is no such file.
    """
    state = None
    try:
        with archive_errors(), tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                if member.name == STATE:
                    state = State(**json.loads(tar.extractfile(member).read()))  # type: ignore[union-attr]  # a file
                else:
                    tar.extract(member, folder, filter="data")
    except (FlawedArchiveError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"checkpoint {storage.shown(where)!r} is no tar file of a Ray Train's: {error}; restore the "
            "file, or train again"
        ) from None
    return state


def part_name(rank: int) -> str:
    """The file of a worker's part."""
    return f"rank-{rank:05d}.tar"


def read_into(
    checkpoint: str, manifest: Manifest, folder: str | Path, read: Callable[[str, Manifest, str], bytes]
) -> State:
    """Writes all files of a checkpoint into a folder, where those of all workers are together, as in Ray Train.

    Args:
        checkpoint: its URI.
        manifest: of it, where it is known.
        folder: an empty one.
        read: gives the bytes of a part, as `trainers.checkpoint.load` does.

    Raises:
        CheckpointError, StorageError: it cannot be read, or is no such checkpoint.
    """
    known = manifest if manifest.files else looked_up(checkpoint)
    states = [unpacked(read(checkpoint, known, part), folder, checkpoint) for part in known.parts]
    return _the_one(states, checkpoint)


def _the_one(states: Iterable[State | None], checkpoint: str) -> State:
    for state in states:
        if state is not None:
            return state
    raise CheckpointError(
        f"checkpoint {storage.shown(checkpoint)!r} does not say where its trial stands: it is none of a Ray Train's"
    )


def numbers_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among a function's metrics, nested ones as "val/loss"; texts are no objective.

    Raises:
        TrialError: one is larger than a float can be.
    """
    numbers = {}
    for name, value in flat(metrics).items():
        if isinstance(value, str | bytes):
            continue
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError):
            continue
        except OverflowError as error:
            raise TrialError(
                f"ray.train.report: metric {name!r} is an integer too large for a float; give a smaller number"
            ) from error
    return numbers


def into_new_folder(checkpoint: str, manifest: Manifest, read: Callable[[str, Manifest, str], bytes]) -> Path:
    """The files of a checkpoint in a temporary folder of their own, which goes with this process.

    Args:
        checkpoint: its URI.
        manifest: of it, where it is known.
        read: see `read_into`.
    """
    scratch = Scratch("checkpoint")
    atexit.register(scratch.close)
    folder = Path(scratch.path, "files")
    folder.mkdir()
    read_into(checkpoint, manifest, folder, read)
    return folder
