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
"""Systems count processor time in hundredths of a second: of less than this nothing is said."""

LOOK_SECONDS = 0.3
"""How long to look where nothing else takes time."""

_RAYLET = "raylet"
"""The process of Ray's on each machine whose children are the workers there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """What other processes used, so that times measured meanwhile, or a job now, may be far off.

    Args:
        others: cores, a mean over the time that was measured.
        cores: that the machine has.
    """

    others: float
    cores: int

    @property
    def used(self) -> str:
        """How much that was, in a clause."""
        return f"other processes used {self.others:.1f} of its {self.cores} cores"

    @property
    def text(self) -> str:
        """For people, behind what was measured."""
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

    Of a process that ended meanwhile that is known only where its parent waited for it, and then with all that it had
    used before. A raylet does not wait for its workers: what those used to their end is missing.
    """
    own = children = 0.0
    for process, (mine, ended) in after.by_job.items():
        mine_before, ended_before = before.by_job.get(process, (0.0, 0.0))
        own += mine - mine_before
        children += ended - ended_before
    gone = sum(sum(used) for process, used in before.by_job.items() if process not in after.by_job)
    return own + max(0.0, children - gone)


def busy_between(before: Usage, after: Usage, *, cores: int, wanted: int) -> Busy | None:
    """Whether too little was left to a job; None if not, or if that is too short a time to tell.

    Args:
        before: at the begin of a time.
        after: at its end.
        cores: of the machine.
        wanted: threads that the job had something to do for; more than there are cores slow each other down, and
            that is no other's doing.
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
        joined: the job runs on a cluster that it did not start, so that what Ray's workers here use is taken for the
            job's; else it is what this process uses, and all that descend from it.
    """

    def __init__(self, *, joined: bool) -> None:
        self._joined = joined
        self._began = usage(joined=joined)

    def until_now(self, wanted: int) -> Busy | None:
        """Whether other processes left too little meanwhile; see `busy_between`."""
        return busy_between(self._began, usage(joined=self._joined), cores=psutil.cpu_count() or 1, wanted=wanted)


def usage(*, joined: bool) -> Usage:
    """What was used until now; see `Look`."""
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
