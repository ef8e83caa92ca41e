"""Choice of a job's workers, where it is left to a probe: this process, or a gang of the size that is fastest."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hpo.autotune import Choice
from hpo.forecasts.one_worker import NotMeasured, measure_here, probe_assignment
from hpo.forecasts.probe import joins
from hpo.text import count
from trainers.channels import Channel
from trainers.cluster import cluster
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
    cores,
    largest_gang,
    resources_per_worker,
)
from trainers.trainer import Trainer

WORTH = 0.9
"""More workers are taken where a unit takes at most this part of the time that it takes on fewer."""

HERE = 0
"""In the place of a number of workers: this process."""


def leaves_workers(estimator: Trainer, ranges: Mapping[str, object]) -> bool:
    """Whether the number of workers is left to a probe.

    Raises:
        ConfigurationError: it is left to one where there is none: of several estimators.
    """
    if any(value == AUTO and name.endswith(f".{WORKERS}") for name, value in estimator.hyperparameters.items()):
        raise ConfigurationError(
            f"{WORKERS} {AUTO!r}: of several estimators no probe chooses the workers; give each a number, or a range"
        )
    return estimator.hyperparameters.get(WORKERS) == AUTO and WORKERS not in ranges


def sizes(most: int, fits: Callable[[int], bool]) -> list[int]:
    """The sizes of gangs to measure, in doubling steps: up to `most`, and those that the trainer takes."""
    doubled, size = [], 1
    while size <= most:
        doubled.append(size)
        size *= 2
    return [size for size in doubled if fits(size)]


def fastest(seconds: Mapping[int, float]) -> int:
    """The size whose unit is fastest; more workers have to be worth it (`WORTH`).

    Args:
        seconds: of a unit, by size; `HERE` is this process.
    """
    best, *others = sorted(seconds)
    for size in others:
        if seconds[size] <= WORTH * seconds[best]:
            best = size
    return best


def chosen_workers(
    estimator: Trainer, channels: Mapping[str, Channel], at_once: int, say: Callable[[str], None]
) -> tuple[Trainer, Choice]:
    """Measures a unit in this process and on gangs of several sizes, and takes the fastest.

    What is measured is time: a unit of more workers may teach another lesson, with `per_worker_batch_size` for one.

    Args:
        estimator: whose static hyperparameters are trained, user code and all.
        channels: what it reads.
        at_once: trials that train beside each other; a gang has to leave room for as many.
        say: is told what is going on.

    Returns:
        The estimator with that number of workers; and what was chosen, and why.

    Raises:
        ConfigurationError, ResourcesError, TrialError: nothing could be measured.
    """
    say(f"{WORKERS} {AUTO!r}: a unit is trained in this process and on gangs, to choose how many workers train a trial")
    seconds: dict[int, float] = {}
    failures: dict[int, str] = {}
    if at_once == 1 and not estimator.scaling.use_gpu:
        alone = with_workers(estimator, HERE)
        here = measure_here(alone, channels, asked=True)
        if isinstance(here, NotMeasured):
            failures[HERE] = here.reason
        else:
            seconds[HERE] = here.a_round
    with _room(estimator, at_once) as most:
        for size in sizes(most, lambda size: _takes(estimator, size)):
            try:
                seconds[size] = _on_gang(with_workers(estimator, size), channels, size)
            except TrialError as error:
                failures[size] = str(error)
    if not seconds:
        raise TrialError(f"{WORKERS} {AUTO!r}: nothing could be measured: {next(iter(failures.values()), 'no size')}")
    size = fastest(seconds)
    why = ", ".join(f"{took:.3g} s {_words(each)}" for each, took in sorted(seconds.items()))
    why = f"an {estimator.unit} takes {why}" if estimator.unit[0] in "aeio" else f"a {estimator.unit} takes {why}"
    if at_once > 1:
        why += f"; {count(most, 'worker')} a trial leave room for {at_once} trials at once"
    for each, reason in failures.items():
        why += f"; not measured {_words(each)}: {reason}"
    return with_workers(estimator, size), Choice(name=WORKERS, chosen=str(size), why=why)


def with_workers(estimator: Trainer, workers: int) -> Trainer:
    """The estimator with so many workers; `HERE` trains in this process."""
    changed: dict[str, Any] = {WORKERS: None if workers == HERE else workers}
    if workers != HERE:
        return estimator.with_hyperparameters(changed)
    words = {**estimator.hyperparameters, **changed}
    resources: Any = {"CPU": cores(None)}
    scaling = replace(estimator.scaling, num_workers=HERE, resources_per_worker=resources)
    return type(estimator)(scaling=scaling, hyperparameters=words, **estimator.arguments)


def _words(size: int) -> str:
    return "in this process" if size == HERE else f"on {count(size, 'worker')}"


def _takes(estimator: Trainer, size: int) -> bool:
    """Whether the hyperparameters suit so many workers: a global batch size has to be divided by them."""
    try:
        with_workers(estimator, size)
    except ConfigurationError:
        return False
    return True


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
        tempfile.TemporaryDirectory(prefix="warmband-probe-") as folder,
        estimator.gangs("probe", channels, workers=workers, storage_path=folder) as gangs,
    ):
        words = estimator.hyperparameters
        due = [probe_assignment(words, 0, f"{folder}/{number}", units=1) for number in range(2)]
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
    raise TrialError(f"waited {patience:g} s for a gang of {count(workers, 'worker')}")
