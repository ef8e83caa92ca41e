"""Detection of other processes that kept cores busy during a measurement."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil

ENOUGH = 0.75
"""Of the cores that a job could use, the part that has to be left to it for its times to hold."""

LEAST_SECONDS = 0.1
"""Systems count processor time in hundredths of a second: shorter times tell nothing."""

LOOK_SECONDS = 0.3
"""How long to look where nothing else takes time."""

_RAYLET = "raylet"
"""The process of Ray's on each machine whose children are the workers there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Processor use of other processes, because of which measured times may be far off.

    Args:
        others: the cores that they used, a mean over the measured time.
        cores: of the machine.
    """

    others: float
    cores: int

    @property
    def used(self) -> str:
        """The use of cores, as a clause."""
        return f"other processes used {self.others:.1f} of its {self.cores} cores"

    @property
    def text(self) -> str:
        """A sentence for people, to follow the measured times."""
        return f"The machine was busy meanwhile: {self.used}, so these times may be far off."


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Processor seconds used up to a moment.

    Args:
        at: the moment, in seconds on a clock that runs forward.
        by_all: by all processes of the machine, and by those of others that it shares its processors with.
        by_job: by each of the job's own processes, and by those of its children that have ended and that it waited for;
            the processes by pid and time of their start.
    """

    at: float
    by_all: float
    by_job: Mapping[tuple[int, float], tuple[float, float]]


def used_by_job(before: Usage, after: Usage) -> float:
    """Processor seconds that the job used between two moments.

    The seconds of a process that ended meanwhile are known only where its parent waited for it, and then with those
    before. A raylet does not wait for its workers: the seconds of those that ended are missing.
    """
    own = children = 0.0
    for process, (mine, ended) in after.by_job.items():
        mine_before, ended_before = before.by_job.get(process, (0.0, 0.0))
        own += mine - mine_before
        children += ended - ended_before
    gone = sum(sum(used) for process, used in before.by_job.items() if process not in after.by_job)
    return own + max(0.0, children - gone)


def busy_between(before: Usage, after: Usage, *, cores: int, wanted: int) -> Busy | None:
    """The load that left a job too few cores; None where enough were left, or the time is too short to tell.

    Args:
        before: at the start of the time.
        after: at its end.
        cores: of the machine.
        wanted: threads of the job at work; more threads than cores slow each other down, without any other process.
    """
    seconds = after.at - before.at
    if seconds < LEAST_SECONDS:
        return None
    others = max(0.0, (after.by_all - before.by_all) - used_by_job(before, after)) / seconds
    left = cores - others
    return Busy(others=min(others, cores), cores=cores) if left < ENOUGH * min(cores, wanted) else None


class Look:
    """Looks at this machine from now on.

    Args:
        joined: the job runs on a cluster that it did not start: all of Ray's workers here count as the job's; else this
            process and its descendants do.
    """

    def __init__(self, *, joined: bool) -> None:
        self._joined = joined
        self._began = usage(joined=joined)

    def until_now(self, wanted: int) -> Busy | None:
        """Whether other processes left too little meanwhile; see `busy_between`."""
        return busy_between(self._began, usage(joined=self._joined), cores=psutil.cpu_count() or 1, wanted=wanted)


def usage(*, joined: bool) -> Usage:
    """The usage until now; see `Look`."""
    mine = [psutil.Process()]
    if joined:
        mine += [process for process in psutil.process_iter(["name"]) if process.info["name"] == _RAYLET]
    system = psutil.cpu_times()
    idle = system.idle + getattr(system, "iowait", 0.0)
    # A guest's time is in a user's as well.
    guests = getattr(system, "guest", 0.0) + getattr(system, "guest_nice", 0.0)
    return Usage(at=time.monotonic(), by_all=sum(system) - idle - guests, by_job=_with_descendants(mine))


def _with_descendants(processes: Iterable[psutil.Process]) -> dict[tuple[int, float], tuple[float, float]]:
    """Processor seconds of processes and all that descend from them; see `Usage`."""
    seconds: dict[tuple[int, float], tuple[float, float]] = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):  # It has ended meanwhile: its parent has its time.
            for each in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    user, system, ended_user, ended_system, *_ = each.cpu_times()
                    seconds[each.pid, each.create_time()] = user + system, ended_user + ended_system
    return seconds
