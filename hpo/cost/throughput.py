"""Throughput of assignments, and the time that the rest of a job, or all of it, takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainers.gangs import Segment

MEASURED_SECONDS = 1.0
"""How much has to be measured before it says anything: what is served first is slow, and a job may be over by then."""

STEADY_SECONDS = 8.0
"""Over how long a new measurement moves what is shown by two thirds of the difference."""

WARM_UP_UNITS, PROBE_UNITS = 1, 5
"""Units that a probe trains, in one process and on a gang: first some that do not count."""

MOST_SECONDS = 2.0
"""How long units are trained for, beside the first; of some that take longer, one is measured."""

COLD_SECONDS = 10.0
"""A first unit that takes longer is all that is measured: of so long a time, what is done once is the smaller part."""


class Pace:
    """Fits seconds = a + b * units by least squares over the assignments served.

    An assignment has costs of its own, so that the short ones a job begins with say little about the long ones that
    follow; a mean over units would take a job of seconds for one of minutes.
    """

    def __init__(self) -> None:
        self.assignments = 0
        """How many were served."""
        self._units = self._seconds = self._units_squared = self._units_seconds = 0.0

    def served(self, units: int, seconds: float) -> None:
        """An assignment of so many units took so many gang-seconds."""
        self.assignments += 1
        self._units += units
        self._seconds += seconds
        self._units_squared += units * units
        self._units_seconds += units * seconds

    def seconds_left(self, units: int, assignments: int, running: float) -> float | None:
        """Gang-seconds that the rest takes; None before enough was measured.

        Args:
            units: that are left at most.
            assignments: that are left at most.
            running: seconds for which the longest assignment has been served, unfinished.
        """
        if self._seconds + running < MEASURED_SECONDS:
            return None
        if not self.assignments:
            return running * assignments
        spread = self._units_squared - self._units**2 / self.assignments
        covariance = self._units_seconds - self._units * self._seconds / self.assignments
        slope = covariance / spread if spread > 0 else self._seconds / self._units
        slope = min(max(slope, 0.0), self._seconds / self._units)
        own = max(0.0, (self._seconds - slope * self._units) / self.assignments)
        return slope * units + own * assignments


class Countdown:
    """Remaining time, steadied for a reader: it counts down, and each new measurement moves it a little.

    Measurements jump where a gang comes up or a rung is decided; what is shown gets there over some seconds.
    """

    def __init__(self) -> None:
        self._end: float | None = None
        self._seen = 0.0

    def see(self, now: float, left: float | None) -> None:
        """A measurement; None changes nothing.

        Args:
            now: seconds, on any clock that runs forward.
            left: seconds that the rest takes at most.
        """
        if left is None:
            return
        weight = 1.0 if self._end is None else 1.0 - math.exp(-max(0.0, now - self._seen) / STEADY_SECONDS)
        self._end = now + left if self._end is None else self._end + weight * (now + left - self._end)
        self._seen = now

    def left(self, now: float) -> float | None:
        """Seconds left; None before the first measurement."""
        return None if self._end is None else max(0.0, self._end - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """Result of a job's probe on its first gang.

    Args:
        segment: of its assignment.
        start_seconds: from when gangs could be asked for until this one was up.
        held_seconds: for which the gang's resources were held of that.
        served_seconds: from handing the assignment out to having it back.
        cold: it is the first that was served.
        before_seconds: from the job's start until gangs could be asked for: Ray's own start, say.
    """

    segment: Segment
    start_seconds: float
    held_seconds: float
    served_seconds: float
    cold: bool = False
    before_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyWorkers:
    """Times of a gang, all in seconds; make it with `of`.

    Args:
        workers: in the gang; a mean where gangs are of several sizes.
        start: until it was up.
        held: that is billed of its start.
        a_round: of a unit, evaluation included.
        an_assignment: what each costs beside its units.
        cold: a unit is the very first, with all in it that is done once.
        before: from the job's start until gangs could be asked for.
    """

    workers: float
    start: float
    held: float
    a_round: float
    an_assignment: float
    cold: bool = False
    before: float = 0.0

    @classmethod
    def of(cls, probed: Probed, workers: int) -> ManyWorkers:
        """The times of a gang of so many workers, from the probe."""
        training = probed.segment.training_seconds
        return cls(
            workers=workers,
            start=probed.start_seconds,
            held=probed.held_seconds,
            a_round=training / max(1, len(probed.segment.reports)),
            an_assignment=max(0.0, probed.served_seconds - training),
            cold=probed.cold,
            before=probed.before_seconds,
        )


def busy_gangs(many: ManyWorkers, *, units: float, assignments: float, gangs: int) -> int:
    """How many gangs are worth their start: so many that the job is over soonest, and no more of them."""
    return min(range(1, gangs + 1), key=lambda count: (_end(many, units, assignments, count), count))


def job_on_gangs(many: ManyWorkers, *, units: float, assignments: float, gangs: int) -> float:
    """Wall seconds of a whole job on gangs that start one after the other, each only while there is work for it."""
    return _end(many, units, assignments, busy_gangs(many, units=units, assignments=assignments, gangs=gangs))


def _end(many: ManyWorkers, units: float, assignments: float, gangs: int) -> float:
    """With g gangs, up after 1, 2, ... g starts, the work is done when their times since then add up to it."""
    work = units * many.a_round + assignments * many.an_assignment
    return many.before + (work + many.start * gangs * (gangs + 1) / 2) / gangs
