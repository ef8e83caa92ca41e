"""A short measured probe: what a unit (a boosting round, an epoch) costs in one process and on a gang."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import ray

from hpo.cost import COLD_SECONDS, MOST_SECONDS, PROBE_UNITS, WARM_UP_UNITS, ManyWorkers, Probed, job_on_gangs
from hpo.forecasts.busy import Busy, Look
from hpo.forecasts.forecast import ONE_UNIT, PROBE, Forecast, Outlook
from hpo.text import estimated
from trainers import storage
from trainers.channels import Channel, Files, Memory, RayData
from trainers.errors import WarmbandError
from trainers.gangs import Assignment, Program, Report, alone, cores, one_line, resources_per_worker
from trainers.process import calm_loaded
from trainers.trainer import Trainer

MOST_ROWS, MOST_CELLS = 200_000, 20_000_000
"""How many rows, and numbers in them, are measured here; of more, a part, scaled."""

MOST_FILE_CELLS = 50_000_000
"""How large files may be to be measured: they are read from end to end, a part of them too."""

_BEGINNING_BYTES = 1 << 16
_ALIKE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWorker:
    """What one worker in this process takes, all in seconds.

    Args:
        rows: of the training channel; None where that is not known.
        features: of each row.
        part: one row in so many was measured; what follows is scaled to all of them.
        load: to load the rows and build the matrices.
        threads: that `num_workers=0` would use.
        a_round: a unit with those.
        worker_threads: that one worker of the gang gets.
        a_worker_round: all rows on one such worker.
        an_assignment: what each costs beside its units.
        cold: a unit is the very first, with all in it that is done once.
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
    def of(cls, probed: Probed, *, channel: Channel, threads: int) -> OneWorker:
        """What a probe showed that was trained in hand.

        Args:
            probed: what it gave.
            channel: the training rows.
            threads: that it used.
        """
        segment = probed.segment
        heading = channel.source.heading
        a_round = segment.training_seconds / max(1, len(segment.reports))
        rows, about = rows_of(channel)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What was measured and said before a job, for its record; `many` is None in hand, `busy` on a quiet machine."""

    one: OneWorker | NotMeasured
    many: ManyWorkers | None
    verdict: str
    busy: Busy | None = None

    def to_json(self) -> dict[str, Any]:
        """For the record: "one_worker" is None where that was not measured, and "why_not" says why."""
        return {
            "one_worker": asdict(self.one) if isinstance(self.one, OneWorker) else None,
            "why_not": self.one.reason if isinstance(self.one, NotMeasured) else "",
            "many_workers": asdict(self.many) if self.many else None,
            "verdict": self.verdict,
            "busy": asdict(self.busy) if self.busy else None,
        }


class Probing:
    """Takes the measurements of a job's probe as they come, and says what they mean.

    Args:
        estimator: whose static hyperparameters are trained.
        channels: what it reads.
        outlook: what the job is to train.
        forecast: what is known of the job already; None makes one of the probe.
        say: prints the verdict, and with it the forecast that is made here.
    """

    def __init__(
        self,
        estimator: Trainer,
        channels: Mapping[str, Channel],
        outlook: Outlook,
        say: Callable[[str], None],
        forecast: Forecast | None = None,
    ) -> None:
        self._estimator = estimator
        self._channels = channels
        self._outlook = outlook
        self._say = say
        self.forecast = forecast
        """What the job will take, as soon as that is known."""
        self._joined = not estimator.in_hand and joins()
        self._look = Look(joined=self._joined)
        self._busy: list[Busy] = []
        # In hand the gang is this process, and the probe is measured there.
        self._one: OneWorker | NotMeasured | None = None
        if not estimator.in_hand:
            self._one = measure_here(estimator, channels)
            self._look_up(cores(None))
        self._probe: Probe | None = None

    def served(self, probed: Probed) -> None:
        """The gang has trained the probe."""
        one, in_hand = self._one, self._one is None
        self._look_up(threads_for(self._estimator))
        workers = self._estimator.workers_for(self._estimator.hyperparameters)
        pace = ManyWorkers.of(probed, workers)
        if one is None:
            channel, threads = self._channels["train"], cores(self._estimator.scaling)
            one = OneWorker.of(probed, channel=channel, threads=threads)
        many = None if in_hand else pace
        outlook = self._outlook
        said = verdict(
            one,
            many,
            unit=self._estimator.unit,
            units=outlook.units,
            assignments=outlook.assignments,
            gangs=outlook.gangs,
        )
        busy = max(self._busy, key=lambda found: found.others, default=None)
        if pace.cold or (isinstance(one, OneWorker) and one.cold):
            said = f"{said} {ONE_UNIT}"
        if busy is not None:
            said = f"{said} {busy.text}"
        self._probe = Probe(one=one, many=many, verdict=said, busy=busy)
        if self.forecast is None:
            self.forecast = outlook.forecast(pace, source=PROBE).doubted(busy.text if busy else "")
            said = f"{said} {self.forecast.bill}"
        self._say(said)

    def _look_up(self, wanted: int) -> None:
        """Notes whether other processes left too little since the last time."""
        if (busy := self._look.until_now(wanted)) is not None:
            self._busy.append(busy)
        self._look = Look(joined=self._joined)

    def to_json(self) -> dict[str, Any]:
        """What was found, for the record; empty as long as nothing was."""
        return self._probe.to_json() if self._probe else {}


# ---- measuring


def joins() -> bool:
    """Whether a gang's workers are on a cluster that is there already."""
    return ray.is_initialized() or bool(os.environ.get("RAY_ADDRESS"))


def threads_for(estimator: Trainer) -> int:
    """That a gang of the static hyperparameters computes with, or this process in hand."""
    if estimator.in_hand:
        return cores(estimator.scaling)
    cpus = max(1, int(resources_per_worker(estimator.scaling).get("CPU", 1)))
    return cpus * estimator.workers_for(estimator.hyperparameters)


def probes(trainer: Trainer) -> tuple[int, ...]:
    """Units of each probe that a gang of this trainer is to serve: where it stays warm, one before the measured one."""
    return (WARM_UP_UNITS, PROBE_UNITS) if trainer.warm else (PROBE_UNITS,)


def probe_assignment(
    hyperparameters: Mapping[str, Any], seed: int, storage_path: str, *, units: int = PROBE_UNITS
) -> Assignment:
    """A few units with static hyperparameters, which belong to no trial.

    A gang serves one of `WARM_UP_UNITS` before the one that is measured: what it does first is slower.
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


def measure_here(estimator: Trainer, channels: Mapping[str, Channel]) -> OneWorker | NotMeasured:
    """Trains a few units in this process, one at least; it never raises for what goes wrong.

    Args:
        estimator: whose static hyperparameters and threads are used.
        channels: as `open_channels` gives them.
    """
    try:
        obstacle = _obstacle(estimator, channels)
        return NotMeasured(reason=obstacle) if obstacle else _measure(estimator, channels)
    except Exception as error:  # Whatever it is, the job will say it where it belongs.
        return NotMeasured(reason=one_line(error))


def _obstacle(estimator: Trainer, channels: Mapping[str, Channel]) -> str:
    if obstacle := estimator.probe_obstacle():
        return obstacle
    for name, channel in channels.items():
        if isinstance(channel.source, RayData):
            return f"channel {name!r} is a ray.data.Dataset"
        if isinstance(channel.source, Files) and _cells(channel.source) > MOST_FILE_CELLS:
            return f"the files of channel {name!r} are too large to read twice"
    return ""


def _measure(estimator: Trainer, channels: Mapping[str, Channel]) -> OneWorker:
    part = _part(channels["train"])
    began = time.perf_counter()
    tables = {name: channel.read(0, min(part, _shape(channel)[0])) for name, channel in channels.items()}
    read = time.perf_counter() - began
    held = {
        name: Channel(
            name=name,
            source=Memory(features=table.features, labels=table.labels, columns=table.feature_names, position=None),
        )
        for name, table in tables.items()
    }
    threads = cores(estimator.scaling)
    worker_threads = threads
    if not estimator.in_hand:
        threads = cores(None)
        worker_threads = max(1, int(resources_per_worker(estimator.scaling).get("CPU", 1)))
    build, a_unit, rest, cold = _train(estimator, held, threads)
    if a_unit > MOST_SECONDS:
        worker_threads = threads  # Once more would take as long.
    on_worker = a_unit if worker_threads == threads else _train(estimator, held, worker_threads)[1]
    rows, features = tables["train"].features.shape
    total = channels["train"].source.rows
    # Files are read from end to end, whatever part is kept.
    reads = 1 if isinstance(channels["train"].source, Files) else part
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
    """Units enough were trained."""


def _train(estimator: Trainer, channels: Mapping[str, Channel], threads: int) -> tuple[float, float, float, bool]:
    """Seconds to load and build, of a unit, and of what an assignment costs beside its units; whether it is cold."""
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

    with tempfile.TemporaryDirectory(prefix="warmband-probe-") as folder:
        assignment = probe_assignment(estimator.hyperparameters, 0, folder, units=units)
        began = time.perf_counter()
        with contextlib.suppress(_LongEnoughError):
            program.train(assignment, note)
        return ends, time.perf_counter() - began


def rows_of(channel: Channel) -> tuple[int | None, bool]:
    """How many rows a channel has, None where that is not known; and whether that is an estimate.

    Small CSV files on this machine are counted; of others the beginning says how long a row is.
    """
    source = channel.source
    if source.rows is not None or not isinstance(source, Files):
        return source.rows, False
    try:
        labels = source.look()
        return (_estimated_rows(source), True) if labels is None else (len(labels), False)
    except (OSError, WarmbandError):  # Whatever it is, the job has read them, or will say it.
        return None, False


def _estimated_rows(files: Files) -> int:
    """Rows of CSV files, from how long those in the first one's beginning are."""
    with files.filesystem.open_input_stream(files.files[0].path) as stream:
        beginning = bytes(stream.read(_BEGINNING_BYTES))
    size = sum(file.weight for file in files.files)
    return max(1, round(size * max(1, beginning.count(b"\n")) / max(1, len(beginning))))


def _shape(channel: Channel) -> tuple[int, int]:
    """Rows and columns, the rows at an estimate for CSV files."""
    source = channel.source
    if isinstance(source, Files):
        return source.rows or _estimated_rows(source), source.width
    assert isinstance(source, Memory), "nothing else is measured"
    return source.features.shape[0], source.features.shape[1]


def _part(channel: Channel) -> int:
    """Of how many rows one is measured."""
    rows, width = _shape(channel)
    return max(1, math.ceil(rows / MOST_ROWS), math.ceil(rows * width / MOST_CELLS))


def _cells(files: Files) -> int:
    """How many numbers files hold, at an estimate for CSV files."""
    return (files.rows or _estimated_rows(files)) * files.width


# ---- what it means


def verdict(
    one: OneWorker | NotMeasured, many: ManyWorkers | None, *, unit: str, units: int, assignments: int, gangs: int
) -> str:
    """What both ways would take for the whole job, in a few sentences.

    Args:
        one: measured in this process.
        many: measured on a gang; None in hand.
        unit: what the trainer calls one.
        units: that the job trains at most, in all, its probe and un-tuned run included.
        assignments: that it trains them in at most.
        gangs: that there may be at once.
    """
    a_unit = f"{'an' if unit[0] in 'aeio' else 'a'} {unit}"  # A unit begins with a y.
    if isinstance(one, NotMeasured):
        said = f"Probe: nothing was measured in one process: {one.reason}."
        if many is None:
            return said
        here = job_on_gangs(many, units=units, assignments=assignments, gangs=gangs)
        takes = f"{a_unit.capitalize()} takes {_ms(many.a_round)} on {_gang(many)}"
        return f"{said} {takes}, the job at most about {estimated(here)}."
    scaled = f" (measured on one row in {one.part}, and scaled)" if one.part > 1 else ""
    rows = "" if one.rows is None else f"about {float(f'{one.rows:.2g}'):,.0f}" if one.about else f"{one.rows:,}"
    size = f"Probe: {rows and f'{rows} rows x '}{one.features} features{scaled}"
    # On a machine that is busy, fewer threads can be faster.
    a_round, threads = min((one.a_round, one.threads), (one.a_worker_round, one.worker_threads))
    asked = "num_workers=0" + ("" if threads == one.threads else f', resources_per_worker={{"CPU": {threads}}}')
    in_one = one.load + units * a_round + assignments * one.an_assignment
    mine = f"{a_unit} takes {_ms(a_round)} in one process on {_count(threads, 'thread')}"
    if many is None:
        beside = "those of its probe and of its un-tuned run among them"
        return f"{size}; {mine}. The job's {units} {unit}s at most, {beside}, take about {estimated(in_one)}."
    here = job_on_gangs(many, units=units, assignments=assignments, gangs=gangs)
    return (
        f"{size}; {mine} and {_ms(many.a_round)} on {_gang(many)}. In one process ({asked}) this job would take "
        f"about {estimated(in_one)}, here about {estimated(here)}: {_comparison(in_one, here)}"
    )


def _comparison(in_one: float, here: float) -> str:
    if here > in_one * (1 + _ALIKE):
        return "distributing costs more than it gives. The job goes on as asked."
    if here < in_one * (1 - _ALIKE):
        return f"distributing makes it {in_one / here:.1f} times as fast."
    return "distributing makes no difference to speak of."


def _gang(many: ManyWorkers) -> str:
    return f"{_count(round(many.workers), 'worker')}, whose start took {many.start:.1f} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
