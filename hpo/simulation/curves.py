"""Recorded learning curves of one task: a table in which every suggestion finds its nearest configuration."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpo.ranges import CategoricalParameter, ParameterRange, present
from hpo.ranking import Ranking
from trainers.errors import ConfigurationError

PER_TRIAL = 5
"""Recorded configurations to a trial, from which on a search takes none of them twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCurve:
    """The learning curve of one configuration.

    Args:
        configuration: a value a tuned hyperparameter.
        values: the objective after each unit from the first on; from one that is not finite on, training diverged.
        seconds: of training until the end of each of these units, from the trial's start; they never fall.
    """

    configuration: Mapping[str, Any]
    values: Sequence[float]
    seconds: Sequence[float]


class Curves:
    """Recorded curves, and the nearest of them to any configuration.

    A curve that ends early, as that of a trial that was stopped does, goes on at its last value and its mean pace.

    Args:
        name: of the table, for messages.
        ranges: of the search; curves of configurations outside of them are left out.
        recorded: the curves, one or more units each.
        start_seconds: from the start of a gang to its first assignment.

    Raises:
        ConfigurationError: no configuration is within the ranges.
    """

    def __init__(
        self,
        name: str,
        ranges: Mapping[str, ParameterRange],
        recorded: Iterable[RecordedCurve],
        *,
        start_seconds: float = 0.0,
    ) -> None:
        whole = list(recorded)
        inside = [
            replace(curve, configuration=tried) for curve in whole if (tried := _tried(ranges, curve.configuration))
        ]
        if not inside:
            raise ConfigurationError(
                f"curves {name!r} have no configuration within the job's ranges, of {len(whole)}; give ranges that "
                "hold some of them"
            )
        self.name = name
        self.start_seconds = start_seconds
        self.left_out = len(whole) - len(inside)
        """Curves of configurations outside of the ranges."""
        self.units = max(len(curve.values) for curve in inside)
        """Units of the longest curve."""
        self.configurations = [dict(curve.configuration) for curve in inside]
        self._ranges = dict(ranges)
        self._recorded = np.array([len(curve.values) for curve in inside])
        self.values = np.array([_held(curve.values, self.units) for curve in inside], dtype=float)
        """The objective by curve and unit."""
        self.seconds = np.array([_paced(curve.seconds, self.units) for curve in inside], dtype=float)
        """Seconds of training by curve, before the first unit and after each."""
        lost = ~np.isfinite(self.values)
        self.diverged_at = np.where(lost.any(axis=1), lost.argmax(axis=1) + 1, self.units + 1)
        """The unit in which each curve diverged; one more than there are where it did not."""
        places = [self._place(each) for each in self.configurations]
        self._places: NDArray[np.float64] = np.array(places, dtype=float).reshape(len(inside), len(ranges))
        self._categorical = np.array([isinstance(each, CategoricalParameter) for each in ranges.values()], dtype=bool)

    def __len__(self) -> int:
        return len(self.configurations)

    @property
    def ended_early(self) -> int:
        """How many curves end before the longest one without having diverged."""
        return int(((self._recorded < self.units) & (self.diverged_at > self.units)).sum())

    def nearest(self, configuration: Mapping[str, Any], taken: Collection[int] = ()) -> int:
        """The curve whose configuration is nearest in the unit cube of the ranges; ties to the first.

        A number's distance is along the scale of its range; another category is as far as the other end of a range,
        and so is a hyperparameter that only one of the two has.

        Args:
            configuration: a value a range whose condition is met, and perhaps others, which do not count.
            taken: curves that are left out; not all of them.
        """
        place = np.array(self._place(configuration))
        there, both = ~np.isnan(place), ~np.isnan(place) & ~np.isnan(self._places)
        far = np.where(self._categorical, self._places != place, self._places - place)
        apart = (np.where(both, far, np.isnan(self._places) == there) ** 2).sum(axis=1)
        apart[list(taken)] = np.inf
        return int(np.argmin(apart))

    def _place(self, configuration: Mapping[str, Any]) -> list[float]:
        """Where a configuration lies in the unit cube; NaN for a hyperparameter that is not there."""
        there = set(present(self._ranges, configuration))
        return [
            bounds.position(configuration[key]) if key in there else math.nan for key, bounds in self._ranges.items()
        ]

    def gives_each_once(self, trials: int) -> bool:
        """Whether a search of so many trials takes no curve twice: where there are `PER_TRIAL` to a trial, or more.

        In training, a suggestion near an earlier one is not that one again. In a smaller table, the nearest that is
        left would soon be far away.
        """
        return len(self) >= PER_TRIAL * trials

    def regret(self, value: float, ranking: Ranking) -> float | None:
        """How far a value is from the best of the table, normalised: 0 is that, and 1 the median final value.

        Diverged curves count as the worst ones of the median.

        Args:
            value: the best that a search has seen; one that is not finite counts as the median.
            ranking: which values are better.

        Returns:
            The regret; None where the best of the table is not known, since curves end early, or is the median.
        """
        best, median = self._scale(ranking.maximize)
        if self.ended_early or not math.isfinite(median) or best == median:
            return None
        return (best - value) / (best - median) if math.isfinite(value) else 1.0

    def _scale(self, maximize: bool) -> tuple[float, float]:
        """The best value of the table, and the median final one."""
        sign = 1.0 if maximize else -1.0
        going = np.arange(1, self.units + 1) < self.diverged_at[:, None]
        values = np.where(going, sign * self.values, -np.inf)
        return sign * float(values.max()), sign * float(np.sort(values[:, -1])[len(self) // 2])

    @cached_property
    def notes(self) -> list[str]:
        """What a reader of simulated figures has to know of the table."""
        notes = [
            f"A suggestion is mapped to its nearest recorded configuration, of {len(self):,} in {self.name}; a search "
            f"of at most {len(self) // PER_TRIAL:,} trials takes none twice."
        ]
        if self.left_out:
            notes.append(f"{self.left_out:,} recorded configurations are outside of the ranges and left out.")
        if self.ended_early:
            notes.append(
                f"{self.ended_early:,} curves end early and go on at their last value, so the best of the table is "
                "not known, and there is no regret."
            )
        return notes


def _tried(ranges: Mapping[str, ParameterRange], recorded: Mapping[str, Any]) -> dict[str, Any] | None:
    """The hyperparameters of a recorded configuration that there are; None where one is outside of its range."""
    there = present(ranges, recorded)
    inside = all(key in recorded and ranges[key].is_valid(recorded[key]) for key in there)
    return {key: recorded[key] for key in there} if inside else None


def _held(values: Sequence[float], units: int) -> list[float]:
    """A curve up to so many units, at its last value where it ends before."""
    return [*values, *[values[-1]] * (units - len(values))]


def _paced(seconds: Sequence[float], units: int) -> list[float]:
    """Seconds from 0 to so many units, at the mean pace where they end before."""
    recorded = len(seconds)
    return [0.0, *seconds, *(seconds[-1] * unit / recorded for unit in range(recorded + 1, units + 1))]
