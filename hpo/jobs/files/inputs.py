"""A job's channels in its record, from which another process opens the same rows again."""

from __future__ import annotations

import io
import logging
import math
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from hpo.jobs.files.changes import changed, changes
from hpo.jobs.files.folder import COPIES
from trainers import storage
from trainers.channels import (
    Channel,
    Examples,
    Files,
    Folder,
    LibsvmFiles,
    Memory,
    OpenedExamples,
    OpenedFolder,
    Table,
    agree,
    from_parts_of,
    is_sparse,
    parts_of,
)
from trainers.datasets import find, load
from trainers.errors import CheckpointError, DataError, WarmbandError

MOST_COPIED = 64 << 20
"""Bytes of rows in memory that a job copies unasked, so that it can be resumed. Written while the first gang starts."""

COPY_SECONDS = 60.0
"""How long the end of a job waits for them."""

logger = logging.getLogger(__name__)

OF_COLUMNS = ("categorical", "drop", "keep", "missing")
"""Arguments of `Channel.of` that say how columns are read, as `reopened_with` has them."""

_COPY = re.compile(r".+-(None|[0-9a-f]{24})\.npz")
"""Names of copies: a channel's name and the digest of its rows."""

_SAID = "said_"
_SPARSE = "sparse_"


def dataset_channels(name: str, *, data_dir: str | None = None, repeat: int = 1) -> dict[str, Channel]:
    """The parts of a named dataset as channels "train", "validation" and "test".

    Args:
        name: one of `trainers.datasets.DATASETS`.
        data_dir: where its files lie; see `trainers.datasets.find`.
        repeat: how often each train and validation row appears.
    """
    found = load(name, data_dir=data_dir, repeat=repeat)
    path = find(name, data_dir)
    folder = None if path is None else str((path if path.is_dir() else path.parent).absolute())
    return {
        part: replace(
            Channel.of(getattr(found, part), name=part),
            origin={"dataset": name, "part": part, "repeat": repeat, "data_dir": folder},
        )
        for part in ("train", "validation", "test")
    }


# ---- for the record


def record_inputs(channels: Mapping[str, Channel], folder: str, *, most_bytes: float = MOST_COPIED) -> dict[str, Any]:
    """A job's channels for its record, as JSON: their content, and under "open" how to open them again.

    Nothing is copied here; `copy_inputs` does it.

    Args:
        channels: as `open_channels` gives them.
        folder: of the job, where copies go.
        most_bytes: all rows in memory together are copied up to so many; pass infinity where another process has to
            open them.
    """
    held = sum(_bytes(channel) for channel in channels.values() if not channel.origin)
    digests = {name: channel.digests() for name, channel in channels.items()}
    return {
        name: {
            **channel.describe(),
            "fingerprint": digests[name][0],
            "parts": dict(digests[name][1]),
            "open": _how(channel, digests[name][0], folder, copied=held <= most_bytes),
        }
        for name, channel in channels.items()
    }


def copy_inputs(recorded: Mapping[str, Any], channels: Mapping[str, Channel]) -> None:
    """Writes the copies that `record_inputs` says there are.

    Raises:
        DataError: they cannot be written.
    """
    for name, channel in channels.items():
        if uri := recorded[name].get("open", {}).get("copy"):
            if (path := storage.local_path(uri)) is not None:
                with suppress(OSError):  # The write says why, if it cannot be made.
                    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            storage.write(uri, _packed(channel.read_whole()))


class Copying:
    """Writes the copies in a thread, for as long as a block takes at most; what cannot be copied is a warning.

    Args:
        recorded: as `copy_inputs` takes it.
        channels: as `copy_inputs` takes it.
    """

    def __init__(self, recorded: Mapping[str, Any], channels: Mapping[str, Channel]) -> None:
        self._copied = recorded, channels
        self._thread = threading.Thread(target=self._copy, name="copies of inputs", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(COPY_SECONDS)

    def _copy(self) -> None:
        try:
            copy_inputs(*self._copied)
        except Exception as error:  # The job is what matters.
            logger.warning("the job's rows in memory are not copied, so another process cannot resume it: %s", error)


def remove_copies(folder: str) -> None:
    """Removes the copies of a job that needs them no more; what else is in their folder stays.

    Args:
        folder: the job's.

    Raises:
        DataError: they are there and cannot be removed.
    """
    copies = storage.join(folder, COPIES)
    if storage.is_link(copies):
        return
    for name in storage.names(copies):
        if _COPY.fullmatch(storage.drafted(name) or name):
            storage.delete(storage.join(copies, name))
    storage.delete_if_empty(copies)


# ---- out of the record


def open_inputs(recorded: Mapping[str, Any], *, data_dir: str | None = None) -> dict[str, Channel]:
    """The channels of a job's record.

    Args:
        recorded: the `inputs` of its spec.
        data_dir: where named datasets lie, where that is not where they were.

    Raises:
        DataError: one cannot be opened from here, or does not hold the rows that it did.
    """
    channels, loaded = {}, _Datasets(data_dir)
    for name, about in recorded.items():
        try:
            channels[name] = _opened(name, about.get("open") or {}, loaded)
        except WarmbandError as error:
            raise DataError(
                f"channel {name!r} cannot be opened again: {error}. Open it yourself, and give it to "
                "HyperparameterTuner.attach(NAME).resume(inputs=...)"
            ) from error
    channels = agree(channels)
    check_same(recorded, channels)
    return channels


def check_same(recorded: Mapping[str, Any], channels: Mapping[str, Channel]) -> None:
    """Refuses rows that are not those that a job's trials were trained on so far.

    Raises:
        DataError: naming the channel.
    """
    if recorded.keys() != channels.keys():
        raise DataError(f"channels are {sorted(channels)}, and the job began with {sorted(recorded)}: give the same")
    for name, channel in channels.items():
        if changed(recorded[name], channel):
            raise DataError(
                f"channel {name!r} has changed since the job began: {changes(recorded[name], channel)}. Trials of both "
                "would not compare: put the old data back, or begin a new job"
            )


# ---- one channel


def _how(channel: Channel, digest: str | None, folder: str, *, copied: bool) -> dict[str, Any]:
    """How to open a channel again; empty where nothing in a record can.

    Of two jobs that are begun under one name at once, one finds its name taken after its copies were written: those of
    other rows have another name.
    """
    source = channel.source
    if channel.origin:
        return dict(channel.origin)
    if isinstance(source, Files | LibsvmFiles | OpenedFolder | OpenedExamples):
        return source.reopened_with()
    if not isinstance(source, Memory) or not copied:
        return {}
    names = source.heading.names
    return {
        "copy": storage.join(storage.absolute(folder), COPIES, f"{channel.name}-{digest}.npz"),
        "names": list(names) if names else None,
        **(
            {"preparation": {"target": channel.describe()["target"], **source.preparation}}
            if source.preparation
            else {}
        ),
    }


def _opened(name: str, how: Mapping[str, Any], datasets: _Datasets) -> Channel:
    match how:
        case {"dataset": str(dataset), "part": str(part), "repeat": int(repeat)}:
            return replace(datasets.channels(dataset, repeat, how.get("data_dir"))[part], name=name)
        case {"paths": list(paths), "target": target, "header": header, "delimiter": delimiter}:
            said = {**_one_each(how.get("said", {})), **{key: how.get(key) for key in OF_COLUMNS}}
            asked = how.get("distribution")
            return Channel.of(
                paths, target=target, header=header, delimiter=delimiter, name=name, distribution=asked, **said
            )
        case {"folder": str(folder), "distribution": distribution}:
            return Channel.of(Folder(folder, distribution), name=name)
        case {"examples": str(kind), "arguments": dict(arguments)}:
            return Channel.of(Examples.of(kind, arguments), name=name)
        case {"copy": str(copy), "names": names}:
            table = _unpacked(copy, _copy(copy), names)
            return Channel(name=name, source=Memory.of_table(table, how.get("preparation", {})))
    raise DataError(
        "its rows were in the memory of the process that began the job, or in a Ray Dataset of its cluster, and no "
        "copy was kept"
    )


def _one_each(said: Mapping[str, list[int]]) -> dict[str, Any]:
    """Places by role as `Channel.of` takes them."""
    return {role: places[0] if len(places) == 1 else places for role, places in said.items()}


class _Datasets:
    """Named datasets, each loaded once for all its channels.

    Args:
        data_dir: where they lie; None: where they were, or wherever they are found here.
    """

    def __init__(self, data_dir: str | None) -> None:
        self._data_dir = data_dir
        self._loaded: dict[tuple[str, int], dict[str, Channel]] = {}

    def channels(self, name: str, repeat: int, was_in: str | None) -> dict[str, Channel]:
        """See `dataset_channels`."""
        if (name, repeat) not in self._loaded:
            folder = self._data_dir or (was_in if was_in and Path(was_in).is_dir() else None)
            self._loaded[name, repeat] = dataset_channels(name, data_dir=folder, repeat=repeat)
        return self._loaded[name, repeat]


def _bytes(channel: Channel) -> float:
    """About what a copy takes."""
    source = channel.source
    if not isinstance(source, Memory):
        return 0.0
    return float(source.features.nnz * 8 if source.sparse else math.prod(source.features.shape) * 4)


# ---- copies


def _packed(table: Table) -> bytes:
    """Rows in NumPy's own form, which no reader has to execute; of categories, codes and what they stand for."""
    held: dict[str, Any] = {"labels": table.labels}
    held |= {f"{_SAID}{role}": numbers for role, numbers in table.said.items()}
    if isinstance(table.features, np.ndarray):
        held["features"] = table.features
    elif is_sparse(table.features):
        held |= {f"{_SPARSE}{part}": array for part, array in parts_of(table.features).items()}
    else:
        for place, name in enumerate(table.features.columns):
            held |= {f"{part}_{place}": values for part, values in _column(table.features[name]).items()}
    buffer = io.BytesIO()
    np.savez(buffer, **held)
    return buffer.getvalue()


def _column(column: Any) -> dict[str, Any]:
    """A column of a frame as plain arrays."""
    if not hasattr(column.dtype, "categories"):
        return {"numbers": column.to_numpy(np.float32)}
    stand_for = column.cat.categories
    values = np.asarray(stand_for.tolist())
    if len({type(value) for value in stand_for.tolist()}) > 1 or values.dtype.kind not in "iufbU":
        raise DataError(f"column {column.name!r} has categories that are neither all numbers nor all text")
    return {
        "codes": column.cat.codes.to_numpy(),
        "categories": values,
        "type": np.asarray(str(stand_for.dtype)),
        "ordered": np.asarray(column.cat.ordered),
    }


def _copy(uri: str) -> bytes:
    try:
        return storage.read(uri)
    except CheckpointError as error:
        raise DataError(
            f"its rows were in the memory of the process that began the job, and their copy, {storage.shown(uri)!r}, "
            "is not there: a job that is Completed keeps none"
        ) from error


def _unpacked(uri: str, data: bytes, names: list[str] | None) -> Table:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            held = dict(arrays)
        features = _features(held, names or [])
    except Exception as error:  # zipfile and NumPy each have their own
        raise DataError(f"its copy {storage.shown(uri)!r} is cut short or damaged: {error}") from error
    said = {name.removeprefix(_SAID): numbers for name, numbers in held.items() if name.startswith(_SAID)}
    return Table(features=features, labels=held["labels"], feature_names=tuple(names) if names else None, said=said)


def _features(held: Mapping[str, Any], names: list[str]) -> Any:
    if "features" in held:
        return held["features"]
    sparse = {name.removeprefix(_SPARSE): array for name, array in held.items() if name.startswith(_SPARSE)}
    return from_parts_of(sparse) if sparse else _frame(held, names)


def _frame(held: Mapping[str, Any], names: list[str]) -> Any:
    import pandas as pd

    columns: dict[str, Any] = {}
    for place, name in enumerate(names):
        if f"numbers_{place}" in held:
            columns[name] = held[f"numbers_{place}"]
            continue
        stand_for = pd.Index(held[f"categories_{place}"].tolist(), dtype=str(held[f"type_{place}"]))
        ordered = bool(held[f"ordered_{place}"])
        columns[name] = pd.Categorical.from_codes(held[f"codes_{place}"], stand_for, ordered=ordered)
    return pd.DataFrame(columns)
