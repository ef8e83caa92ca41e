"""How fast assignments have been served so far, and how long the rest will take at that pace."""

from __future__ import annotations

MEASURED_SECONDS = 1.0
"""How much has to be measured before it says anything: what is served first is slow, and a job may be over by then."""


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
