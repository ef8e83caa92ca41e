"""Timing of one worker in this process: loading, a unit and an assignment."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hpo.cost import COLD_SECONDS, MOST_SECONDS, PROBE_UNITS, WARM_UP_UNITS, Probed
from trainers import storage
from trainers.channels import Channel, Files, LibsvmFiles, Memory, RayData
from trainers.deletion import temporary_folder
from trainers.errors import WarmbandError
from trainers.gangs import Assignment, Program, Report, alone, cores, one_line, resources_per_worker
from trainers.process import calm_loaded
from trainers.trainer import Trainer

MOST_ROWS, MOST_CELLS = 200_000, 20_000_000
"""Rows, and numbers in them, that are measured here; of more, a part, scaled."""

MOST_FILE_CELLS = 50_000_000
"""Size of the largest files that are measured: they are read from end to end, even for a part of them."""

_BEGINNING_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWorker:
    """Times of one worker in this process, all in seconds.

    Args:
        rows: of the training channel; None where that is not known.
        features: of each row.
        part: one row in so many was measured; what follows is scaled to all of them.
        load: to load the rows and build the matrices.
        threads: of `num_workers=0`.
        a_round: a unit with those.
        worker_threads: of one worker of the gang.
        a_worker_round: all rows on one such worker.
        an_assignment: seconds of each beside its units.
        cold: a unit is the very first, with all one-time work in it.
        about: `rows` are an estimate, from the size of CSV files.
    """

    rows: int | None
    features: int
    part: int
    load: float
    threads: int
    a_round: float
    worker_threads: int
    a_worker_round: float
    an_assignment: float
    cold: bool = False
    about: bool = False

    @classmethod
    def of(cls, probed: Probed, *, channel: Channel | None, threads: int) -> OneWorker:
        """The times of a probe in this process.

        Args:
            probed: its result.
            channel: the training rows; None where the trainer reads its own.
            threads: of the probe.
        """
        segment = probed.segment
        heading = channel.source.heading if channel else None
        a_round = segment.training_seconds / max(1, len(segment.reports))
        rows, about = rows_of(channel) if channel else (None, False)
        return cls(
            rows=rows,
            about=about,
            features=heading.count if heading else 0,
            part=1,
            load=0.0,
            threads=threads,
            a_round=a_round,
            worker_threads=threads,
            a_worker_round=a_round,
            an_assignment=max(0.0, probed.served_seconds - segment.training_seconds),
            cold=probed.cold,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMeasured:
    """One worker in this process could not be measured, and why."""

    reason: str


def probe_assignment(
    hyperparameters: Mapping[str, Any], seed: int, storage_path: str, *, units: int = PROBE_UNITS
) -> Assignment:
    """A few units with static hyperparameters, which belong to no trial.

    A gang serves one of `WARM_UP_UNITS` before the measured one, since the first is slower.
    """
    return Assignment(
        trial_id="probe",
        hyperparameters=dict(hyperparameters),
        seed=seed,
        start=0,
        stop=units,
        checkpoint=None,
        save_to=storage.join(storage_path, "probe", f"{units:06d}"),
    )


def measure_here(
    estimator: Trainer, channels: Mapping[str, Channel], *, asked: bool = False
) -> OneWorker | NotMeasured:
    """Trains a few units in this process, one at least; it never raises.

    Args:
        estimator: whose static hyperparameters and threads are used.
        channels: as `open_channels` gives them.
        asked: its user has asked for it, so that user code runs, too.
    """
    try:
        obstacle = ("" if asked else estimator.probe_obstacle()) or _obstacle(channels)
        return NotMeasured(reason=obstacle) if obstacle else _measure(estimator, channels)
    except Exception as error:  # The job will raise the same error where it belongs.
        return NotMeasured(reason=one_line(error))


def _obstacle(channels: Mapping[str, Channel]) -> str:
    for name, channel in channels.items():
        if isinstance(channel.source, RayData):
            return f"channel {name!r} is a ray.data.Dataset"
        if isinstance(channel.source, Files | LibsvmFiles) and _cells(channel) > MOST_FILE_CELLS:
            return f"the files of channel {name!r} are too large to read twice"
    return ""


def _measure(estimator: Trainer, channels: Mapping[str, Channel]) -> OneWorker:
    part = _part(channels["train"])
    began = time.perf_counter()
    tables = {name: channel.read(0, min(part, _shape(channel)[0])) for name, channel in channels.items()}
    read = time.perf_counter() - began
    in_memory = {
        name: Channel(name=name, source=Memory.of_table(table, {}), measured=channels[name].measured)
        for name, table in tables.items()
    }
    threads = cores(estimator.scaling)
    worker_threads = threads
    if not estimator.in_hand:
        threads = cores(None)
        worker_threads = max(1, int(resources_per_worker(estimator.scaling).get("CPU", 1)))
    build, a_unit, rest, cold = _train(estimator, in_memory, threads)
    if a_unit > MOST_SECONDS:
        worker_threads = threads  # Once more would take as long.
    on_worker = a_unit if worker_threads == threads else _train(estimator, in_memory, worker_threads)[1]
    rows, features = tables["train"].features.shape
    total = channels["train"].source.rows
    # Files are read from end to end, whatever part is kept.
    reads = 1 if isinstance(channels["train"].source, Files | LibsvmFiles) else part
    return OneWorker(
        rows=rows * part if total is None else total,
        about=total is None and part > 1,
        features=features,
        part=part,
        load=read * reads + build * part,
        threads=threads,
        a_round=a_unit * part,
        worker_threads=worker_threads,
        a_worker_round=on_worker * part,
        an_assignment=rest * part,
        cold=cold,
    )


class _LongEnoughError(Exception):
    """Ends the training after enough units."""


def _train(estimator: Trainer, channels: Mapping[str, Channel], threads: int) -> tuple[float, float, float, bool]:
    """Seconds to load and build, of a unit, and of an assignment beside its units; whether it is cold."""
    calm_loaded()
    program = estimator.program({name: channel.place(0) for name, channel in channels.items()})
    build = sum(seconds for step, seconds in program.open(alone(threads)).items() if step != "import")
    try:
        # The first unit of all is slower than those that follow.
        first, _ = _units(program, estimator, WARM_UP_UNITS)
        if first[-1] > COLD_SECONDS:
            return build, first[-1], 0.0, True
        ends, took = _units(program, estimator, PROBE_UNITS)
    finally:
        program.close()
    a_unit = statistics.median([after - before for before, after in pairwise(ends)] or ends)
    return build, a_unit, max(0.0, took - len(ends) * a_unit), False


def _units(program: Program, estimator: Trainer, units: int) -> tuple[list[float], float]:
    """When each unit of an assignment ended and how long it took in all, in seconds since it began."""
    ends: list[float] = []

    def note(report: Report) -> None:
        ends.append(time.perf_counter() - began)
        if ends[-1] > MOST_SECONDS:
            raise _LongEnoughError

    with temporary_folder(prefix="warmband-probe-") as folder:
        assignment = probe_assignment(estimator.hyperparameters, 0, str(folder), units=units)
        began = time.perf_counter()
        with contextlib.suppress(_LongEnoughError):
            program.train(assignment, note)
        return ends, time.perf_counter() - began


def rows_of(channel: Channel) -> tuple[int | None, bool]:
    """The number of a channel's rows, None where it is not known; and whether it is an estimate.

    Small CSV files on this machine are counted; of others the beginning says how long a row is.
    """
    source = channel.source
    if source.rows is not None or not isinstance(source, Files):
        return source.rows, False
    try:
        labels = source.look()
        return (_estimated_rows(source), True) if labels is None else (len(labels), False)
    except (OSError, WarmbandError):  # The job has read them, or will raise the same error.
        return None, False


def _estimated_rows(files: Files) -> int:
    """Rows of CSV files, estimated by the lengths of the first rows."""
    with files.filesystem.open_input_stream(files.files[0].path) as stream:
        beginning = bytes(stream.read(_BEGINNING_BYTES))
    return max(1, round(files.text_bytes * max(1, beginning.count(b"\n")) / max(1, len(beginning))))


def _shape(channel: Channel) -> tuple[int, int]:
    """Rows and columns, the rows at an estimate for CSV files."""
    source = channel.source
    if isinstance(source, Files):
        return source.rows or _estimated_rows(source), source.width
    if isinstance(source, LibsvmFiles):
        return source.rows, source.width
    assert isinstance(source, Memory), "nothing else is measured"
    return source.features.shape[0], source.features.shape[1]


def _part(channel: Channel) -> int:
    """The step between measured rows: of so many, one is measured."""
    return max(1, math.ceil(_shape(channel)[0] / MOST_ROWS), math.ceil(_cells(channel) / MOST_CELLS))


def _cells(channel: Channel) -> int:
    """Numbers that its rows hold."""
    return channel.entries if channel.sparse else math.prod(_shape(channel))
