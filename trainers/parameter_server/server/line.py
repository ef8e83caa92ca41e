"""One direction of a server's link: bytes a second for all workers, one transfer after another; pure."""

from __future__ import annotations


class Line:
    """Carries what it is given in the order in which it comes, each for as long as its bytes take.

    Args:
        bytes_per_second: what it carries; None for a line that takes no time.
    """

    def __init__(self, bytes_per_second: float | None) -> None:
        self.seconds = 0.0
        """What all transfers took together, waiting for those before them included."""
        self._rate = bytes_per_second
        self._free = 0.0

    def carry(self, size: int, now: float) -> float:
        """Takes a transfer on.

        Args:
            size: its bytes.
            now: when it comes, in seconds; not before any that came earlier.

        Returns:
            When it has arrived, on the same clock.
        """
        if self._rate is None or not size:
            return now
        self._free = max(self._free, now) + size / self._rate
        self.seconds += self._free - now
        return self._free

    def clear(self) -> None:
        """All has arrived, and the clock counts from 0 again."""
        self._free = 0.0
