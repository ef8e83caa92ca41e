"""Rates: a bucket of permits for each token or address, filled at a steady pace."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

MOST = 10_000
"""Buckets that are kept; the one that was not asked for longest goes first, and would be full by then."""


class Rates:
    """Permits for requests.

    Args:
        rate: permits a second of each key.
        burst: permits that a key may have saved up.
        clock: seconds.
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst = rate, burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, cost: float = 1.0) -> float:
        """Takes permits of a key.

        Returns:
            0; or, where there are too few and none is taken, the seconds until there are enough.
        """
        now = self._clock()
        left, at = self._buckets.pop(key, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        missing = cost - left
        self._buckets[key] = (left if missing > 0 else left - cost, now)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        return max(0.0, missing / self.rate)
