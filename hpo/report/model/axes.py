"""Axes of hyperparameters: even on the scale of their search, with values that are easy to read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator

from hpo.ranges import CategoricalParameter, IntegerParameter, NormalParameter, ParameterRange, Scalar
from hpo.report.pictures import look
from hpo.text import short

TICKS, APART = 4, 0.24
"""Ticks that an axis is to have about, and how far from each other: a panel on a phone has room for no more."""

OUTERMOST = 0.02
"""Of a normal range, ticks stand between this place and as far from the other end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis from 0 to 1.

    Args:
        name: the hyperparameter's.
        bounds: its range.
        ticks: places and what is written there.
    """

    name: str
    bounds: ParameterRange
    ticks: Sequence[tuple[float, str]]

    @classmethod
    def of(cls, name: str, bounds: ParameterRange) -> Self:
        """The axis of a range."""
        ticks = [(bounds.position(value), _text(value)) for value in _round(bounds)]
        if not isinstance(bounds, CategoricalParameter):
            ticks = _apart(ticks)
        return cls(name=name, bounds=bounds, ticks=ticks)

    @property
    def categorical(self) -> bool:
        """Whether its values have no order."""
        return isinstance(self.bounds, CategoricalParameter)

    @property
    def title(self) -> str:
        """Its name, and the scale where it is not even in the values."""
        scaling = "Linear" if isinstance(self.bounds, CategoricalParameter) else self.bounds.resolved_scaling
        return self.name + {"Linear": "", "Logarithmic": " (log)"}.get(scaling, " (reverse log)")

    def place(self, value: Scalar) -> float:
        """Where a value lies."""
        return float(self.bounds.position(value))

    def aside(self, value: Scalar, number: int) -> float:
        """Where a trial's value lies, of a category a little beside those of other trials; the same every time."""
        if not isinstance(self.bounds, CategoricalParameter):
            return self.place(value)
        return self.place(value) + ((number * 0.618034) % 1.0 - 0.5) * 0.4 / len(self.bounds.values)

    def values(self, most: int) -> list[Scalar]:
        """Values evenly over the axis, each once; all of them where there are no more than so many."""
        if isinstance(self.bounds, CategoricalParameter):
            return list(self.bounds.values)
        return list(dict.fromkeys(self.bounds.at(float(place)) for place in np.linspace(0, 1, most)))

    def plotly(self) -> dict[str, Any]:
        """Its form in an interactive picture."""
        return {
            "title": {"text": look.plain(look.wrapped(self.title, 26)).replace("\n", "<br>"), "standoff": 4},
            "tickvals": [place for place, _ in self.ticks],
            "ticktext": [look.plain(text) for _, text in self.ticks],
            "range": [0, 1] if self.categorical else [-0.03, 1.03],
        }

    def draw(self, axes: Any, which: str) -> None:
        """Its form in a still.

        Args:
            axes: of matplotlib's.
            which: "x" or "y".
        """
        getattr(axes, f"set_{which}ticks")([place for place, _ in self.ticks], [text for _, text in self.ticks])
        getattr(axes, f"set_{which}label")(look.wrapped(self.title, 30))
        getattr(axes, f"set_{which}lim")(*((0, 1) if self.categorical else (-0.03, 1.03)))


def _round(bounds: ParameterRange) -> Iterator[Scalar]:
    """Values that are easy to read, rising; too many."""
    if isinstance(bounds, CategoricalParameter):
        yield from bounds.values
        return
    edge = OUTERMOST if isinstance(bounds, NormalParameter) else 0.0
    low, high = float(bounds.at(edge)), float(bounds.at(1 - edge))
    if bounds.resolved_scaling == "Logarithmic":
        yield from _decades(low, high)
    elif bounds.resolved_scaling == "ReverseLogarithmic":
        yield low
        yield from (1 - left for left in reversed(list(_decades(1 - high, 1 - low))))
    else:
        whole = isinstance(bounds, IntegerParameter)
        for value in MaxNLocator(TICKS, steps=[1, 2, 2.5, 5, 10], integer=whole).tick_values(low, high):
            if low <= value <= high and not (whole and value % 1):
                yield int(value) if whole else float(value)


def _decades(low: float, high: float) -> Iterator[float]:
    """Powers of ten between bounds, and what lies between those where they are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    parts = (1,) if last - first > 2 else (1, 2, 5)
    for exponent in range(first, last + 1):
        for part in parts:
            value = float(f"{part}e{exponent}")
            if low <= value <= high:
                yield value


def _apart(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The ticks that have room beside those before them."""
    kept: list[tuple[float, str]] = []
    for place, text in ticks:
        if not kept or place - kept[-1][0] >= APART:
            kept.append((place, text))
    return kept


def _text(value: Scalar) -> str:
    return look.shortened(value, 12) if isinstance(value, str) else short(value)
