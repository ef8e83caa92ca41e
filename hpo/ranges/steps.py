"""Steps: the values of a range that lie a step apart, exact as decimal numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

MOST_STEPS = 10**9
"""From the least value to the greatest: positions in a range tell so many apart."""


FINEST = 2.0**40
"""How many times a step the largest number of its range may be: logarithms keep so many digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Values from the least on: `first + place * by`, over a common denominator, so that a division rounds but once.

    Args:
        first: numerator of the least value.
        by: numerator of the step.
        over: the denominator of both; 0 stands for whole numbers, which stay ints.
        size: how many values there are.
    """

    first: int
    by: int
    over: int
    size: int

    def value(self, place: int) -> float:
        """The value at a place from 0 on."""
        numerator = self.first + min(max(place, 0), self.size - 1) * self.by
        return numerator / self.over if self.over else numerator

    def nearest(self, value: float) -> int:
        """The place of the value that is nearest to a number."""
        over = self.over or 1
        place = round((value - self.first / over) / (self.by / over))
        return min(max(place, 0), self.size - 1)


@lru_cache(maxsize=1024, typed=True)  # 1 and 1.0 are equal, and their values are of two types.
def steps_between(low: float, high: float, step: float) -> Steps:
    """The values `low`, `low + step` and so on, up to `high` at most.

    Args:
        low: the least value.
        high: what no value is above.
        step: above 0; of an int, as the other two then are, values are ints.
    """
    start, by = exactly(low), exactly(step)
    over = math.lcm(start.denominator, by.denominator)
    return Steps(
        first=int(start * over),
        by=int(by * over),
        over=0 if isinstance(step, int) else over,
        size=1 + math.floor((exactly(high) - start) / by),
    )


def exactly(value: float) -> Fraction:
    """A number as it is written: 0.1 is a tenth, which no float is."""
    return Fraction(repr(value))
