"""Choice of a job's workers and layout, where they are left to a probe: the fastest of this process and of gangs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from hpo.autotune import Choice
from hpo.forecasts.one_worker import NotMeasured, measure_here, probe_assignment
from hpo.forecasts.probe import joins
from hpo.text import count
from trainers.channels import Channel
from trainers.cluster import cluster
from trainers.deletion import temporary_folder
from trainers.errors import ConfigurationError, TrialError
from trainers.gangs import (
    AUTO,
    WORKERS,
    Assignment,
    GangEnded,
    Gangs,
    GangUp,
    Segment,
    Served,
    StorageAway,
    cores,
    largest_gang,
    resources_per_worker,
)
from trainers.trainer import Trainer

WORTH = 0.9
"""More workers are taken where a unit takes at most this part of the time that it takes on fewer."""

LAYOUT = "layout"
"""The hyperparameter of a trainer that `LaysOut`."""

HERE = 0
"""In the place of a number of workers: this process."""


@runtime_checkable
class LaysOut(Protocol):
    """A trainer whose workers may share a model in several layouts."""

    def layouts(self, workers: int) -> Sequence[str]:
        """The layouts of so many workers that a probe compares, what is simplest first."""


@dataclass(frozen=True, order=True, slots=True)
class Way:
    """One way to train a trial.

    Args:
        workers: of its gang; `HERE` is this process.
        place: of the layout, among those of as many workers.
        layout: in words; empty where it is not left to a probe.
    """

    workers: int
    place: int = 0
    layout: str = ""

    def __str__(self) -> str:
        where = "in this process" if self.workers == HERE else f"on {count(self.workers, 'worker')}"
        return f"{where} with {self.layout}" if self.layout else where


def left_to_probe(estimator: Trainer, ranges: Mapping[str, object]) -> tuple[str, ...]:
    """The hyperparameters of a static configuration that are left to a probe: the number of workers, the layout.

    Raises:
        ConfigurationError: one is left to it where there is none: of several estimators.
    """
    static = estimator.hyperparameters
    if any(value == AUTO and name.endswith((f".{WORKERS}", f".{LAYOUT}")) for name, value in static.items()):
        raise ConfigurationError(
            f"{WORKERS} or {LAYOUT} {AUTO!r}: of several estimators no probe chooses the workers; give each a number, "
            "or a range"
        )
    left = [WORKERS, *([LAYOUT] if isinstance(estimator, LaysOut) else [])]
    return tuple(name for name in left if static.get(name) == AUTO and name not in ranges)


def sizes(most: int) -> list[int]:
    """The sizes of gangs to measure: up to `most`, in doubling steps."""
    return [1 << step for step in range(most.bit_length()) if 1 << step <= most]


def fastest(seconds: Mapping[Way, float]) -> Way:
    """The way whose unit is fastest; more workers, or another layout, have to be worth it (`WORTH`).

    Args:
        seconds: of a unit.
    """
    best, *others = sorted(seconds)
    for way in others:
        if seconds[way] <= WORTH * seconds[best]:
            best = way
    return best


def chosen_workers(
    estimator: Trainer,
    left: Collection[str],
    missing: Mapping[str, Any],
    channels: Mapping[str, Channel],
    at_once: int,
    say: Callable[[str], None],
) -> tuple[Trainer, tuple[Choice, ...]]:
    """Measures a unit in this process and on gangs of several sizes and layouts, and takes the fastest.

    What is measured is time: a unit of more workers may teach another lesson, with `per_worker_batch_size` for one.

    Args:
        estimator: whose static hyperparameters are trained, user code and all.
        left: what is left to the probe.
        missing: values of hyperparameters that have a range alone.
        channels: what it reads.
        at_once: trials that train beside each other; a gang has to leave room for as many.
        say: is told what is going on.

    Returns:
        The estimator with what was chosen; and that, and why.

    Raises:
        ConfigurationError, ResourcesError, TrialError: nothing could be measured.
    """
    names = " and ".join(left)
    say(f"{names} {AUTO!r}: a unit is trained in several ways, to choose how many workers train a trial, and how")
    seconds: dict[Way, float] = {}
    failures: dict[Way, str] = {}
    tried = estimator.with_hyperparameters({**missing, **dict.fromkeys(left)})
    if WORKERS in left and at_once == 1 and not estimator.scaling.use_gpu:
        here = measure_here(_under(tried, Way(HERE), left), channels, asked=True)
        if isinstance(here, NotMeasured):
            failures[Way(HERE)] = here.reason
        else:
            seconds[Way(HERE)] = here.a_round
    with _room(estimator, at_once) as most:
        for size in sizes(most) if WORKERS in left else [tried.workers_for(tried.hyperparameters)]:
            before = min((took for way, took in seconds.items() if way.workers != HERE), default=math.inf)
            for way in _ways(tried, left, size):
                try:
                    seconds[way] = _on_gang(_under(tried, way, left), channels, size)
                except TrialError as error:
                    failures[way] = str(error)
            now = [took for way, took in seconds.items() if way.workers == size]
            if now and min(now) >= before:
                break  # Still more workers would be slower still.
    if not seconds:
        raise TrialError(f"{names} {AUTO!r}: nothing could be measured: {next(iter(failures.values()), 'no size')}")
    best = fastest(seconds)
    took = ", ".join(f"{seconds[way]:.3g} s {way}" for way in sorted(seconds))
    why = f"{'an' if estimator.unit[0] in 'aeio' else 'a'} {estimator.unit} takes {took}"
    if at_once > 1 and WORKERS in left:
        why += f"; {count(most, 'worker')} a trial leave room for {at_once} trials at once"
    for way, reason in failures.items():
        why += f"; not measured {way}: {reason}"
    choices = {WORKERS: str(best.workers), LAYOUT: best.layout or "none"}
    return _under(estimator, best, left), tuple(Choice(name=name, chosen=choices[name], why=why) for name in left)


def _ways(estimator: Trainer, left: Collection[str], workers: int) -> list[Way]:
    """The ways that the hyperparameters suit: a global batch size has to be divided by the workers."""
    layouts = estimator.layouts(workers) if LAYOUT in left and isinstance(estimator, LaysOut) else [""]
    ways = []
    for place, layout in enumerate(layouts):
        with suppress(ConfigurationError):
            _under(estimator, way := Way(workers, place, layout), left)
            ways.append(way)
    return ways


def _under(estimator: Trainer, way: Way, left: Collection[str]) -> Trainer:
    """The estimator as one way has it; of what was not left to the probe nothing changes."""
    changed: dict[str, Any] = {WORKERS: way.workers or None, LAYOUT: way.layout or None}
    words = {**estimator.hyperparameters, **{name: value for name, value in changed.items() if name in left}}
    scaling = estimator.scaling
    if way.workers == HERE:
        resources: Any = {"CPU": cores(None)}
        scaling = replace(scaling, num_workers=HERE, resources_per_worker=resources)
    return type(estimator)(scaling=scaling, hyperparameters=words, **estimator.arguments)


@contextmanager
def _room(estimator: Trainer, at_once: int) -> Iterator[int]:
    """The most workers that a trial's gang may have, while there is a cluster for them."""
    cpus = resources_per_worker(estimator.scaling).get("CPU", 0.0)
    if not joins():
        most = int(cores(None) / cpus) // at_once if cpus else 1
        with cluster(round(max(1, most) * cpus * at_once)):
            yield max(1, most)
        return
    with cluster(0):
        yield largest_gang(estimator.scaling, at_once)


def _on_gang(estimator: Trainer, channels: Mapping[str, Channel], workers: int) -> float:
    """Seconds of a unit on a gang: its second, since the first is slower."""
    with (
        temporary_folder(prefix="warmband-probe-") as folder,
        estimator.gangs("probe", channels, workers=workers, storage_path=str(folder)) as gangs,
    ):
        due = [probe_assignment(estimator.hyperparameters, 0, str(folder), units=1)] * 2
        segment = served(gangs, due, workers, estimator.patience)
    return segment.training_seconds / max(1, len(segment.reports))


def served(gangs: Gangs, due: Sequence[Assignment], workers: int, patience: float) -> Segment:
    """The last of some assignments, served one after another by one gang.

    Raises:
        TrialError: one failed, or its gang did not come, or gave no sign for `patience` seconds.
    """
    waiting = list(due)
    heard = time.monotonic()
    while time.monotonic() - heard < patience:
        gangs.want({workers: 1}, None)
        for event in gangs.events(1.0):
            heard = time.monotonic()
            match event:
                case GangUp():
                    gangs.assign(event.gang, waiting[0])
                case Served(segment=Segment() as segment):
                    waiting.pop(0)
                    if not waiting:
                        return segment
                    gangs.assign(event.gang, waiting[0])
                case Served() | GangEnded():
                    raise TrialError(event.error, event.traceback, event.logs)
                case StorageAway(reason=reason) if reason:
                    raise TrialError(reason)
    raise TrialError(f"waited {patience:g} s for a gang of {count(workers, 'worker')}")
