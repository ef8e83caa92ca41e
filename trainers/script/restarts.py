"""The unit at which a program goes on that was started again after a pause and gives no steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

OPENING = 3
"""Values in a row that have to come again, or all up to the trial's last unit, before they count as trained again."""
KEPT_UNITS = 300
"""Last units of a trial whose values are kept, beside its first `OPENING` units."""
CLEAR = 0.25
"""A file that was written within this part of a unit, before or after its value came, is that unit's checkpoint."""

Metrics = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Facts of a trial's earlier runs, which tell how the units of the next run count.

    Args:
        values: metrics of the trial's own units, by unit; of the first `OPENING` and the last `KEPT_UNITS`.
        files: the unit at which each checkpoint file was written, by path: 3.1 is a little after the value of unit 3.
        flat: the metrics of its last two units are the same.
        evaluates_first: a program that goes on prints the values of its last unit once more; None if not known yet.
        first_step: the step of unit 1; None if the program gives no steps.
    """

    values: Mapping[int, Metrics] = field(default_factory=dict)
    files: Mapping[str, float] = field(default_factory=dict)
    flat: bool = False
    evaluates_first: bool | None = None
    first_step: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position of a program that was started again.

    Args:
        unit: the program's first value is that of the unit after this one.
        matched: its first values are those that the trial had there.
        reason: why it is an estimate; empty if it is known.
    """

    unit: int
    matched: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A trial whose program was started again with its checkpoints.

    Args:
        start: units that the trial has.
        past: of the trial.
        last: metrics of its last unit.
        objective: the metric that marks a unit.
    """

    start: int
    past: Past
    last: Metrics | None
    objective: str

    def position(self, first: Sequence[Metrics], read: Collection[str] | None) -> Position | None:
        """Return the program's position; None if its next value has to tell.

        Args:
            first: the program's first values, one or more.
            read: the checkpoint files that it read before its first value; None if that is not known.
        """
        if not self.start or (read is not None and not read):
            return Position(unit=0)
        matches = [unit - 1 for unit in self.past.values if unit <= self.start and self._repeats(first, unit - 1)]
        if any(len(first) < self._window(unit) for unit in matches):
            return None
        written = max((self.past.files[path] for path in read or () if path in self.past.files), default=None)
        if matches:
            near = self.start if written is None else written
            nearest = min(matches, key=lambda unit: abs(unit - near))
            reason = "its first values came at several units before" if len(matches) > 1 else ""
            return Position(unit=nearest, matched=True, reason=reason)
        unit = self.start if written is None else min(math.floor(written + 0.5), self.start)
        if unit < self.start and same(first[0], self.past.values.get(unit + 1), self.objective):
            return Position(unit=unit, matched=True)
        if unit == self.start and same(first[0], self.last, self.objective) and not self.past.flat:
            if self.past.evaluates_first is False and written is None:
                return Position(unit=unit - 1, matched=True, reason=f"its first value was that of unit {unit}")
            return Position(unit=unit)  # Whether it evaluates or trains its last unit again, the next one is the same.
        if written is None:
            return Position(unit=unit, reason="nobody knows which checkpoint it read")
        clear = unit == self.start and (written >= unit or unit - written <= CLEAR)
        if clear and len(units := self._written_at(read or ())) > 1:
            listed = ", ".join(map(str, units))
            return Position(unit=unit, reason=f"the files that it read were written at units {listed}")
        return Position(unit=unit, reason="" if clear else "its checkpoint was written about then")

    def evaluates(self, first: Metrics, unit: int) -> bool:
        """Return whether a first value at a unit's checkpoint is that unit's value once more, as of an evaluation."""
        if unit == self.start:
            return same(first, self.last, self.objective)
        values = self.past.values
        return same(first, values.get(unit), self.objective) and not same(first, values.get(unit + 1), self.objective)

    def _written_at(self, read: Collection[str]) -> list[int]:
        """The units of files that were read, in their order, without those of settings, which are written at first."""
        units = {min(math.floor(self.past.files[path] + 0.5), self.start) for path in read if path in self.past.files}
        return sorted(units - {0})

    def _repeats(self, first: Sequence[Metrics], unit: int) -> bool:
        """Whether the first values are those of the units after a unit.

        Values that are all the same as the trial's last one tell nothing: they may be further units.
        """
        values = [self.past.values.get(unit + 1 + place) for place in range(self._window(unit))]
        known = [each for each in values if each is not None]
        if len(known) < len(values) or all(same(each, self.last, self.objective) for each in known):
            return False
        return all(same(new, old, self.objective) for new, old in zip(first, known, strict=False))

    def _window(self, unit: int) -> int:
        return min(OPENING, self.start - unit)


def same(one: Metrics, other: Metrics | None, objective: str) -> bool:
    """Return whether the metrics of two units are the same values.

    The objective has to be, and one more metric that both have, if there are any: an accuracy may come again by chance,
    and the seconds of an evaluation hardly do.
    """
    if other is None or objective not in one or objective not in other or not _equal(one[objective], other[objective]):
        return False
    others: Sequence[str] = [name for name in one if name != objective and name in other]
    return not others or any(_equal(one[name], other[name]) for name in others)


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


class UnitTimes:
    """The times at which a run's units were reported, by the clock of the node that also stamps its files.

    Args:
        began: when the program was started.
    """

    def __init__(self, began: float) -> None:
        self._began = began
        self._times: dict[int, float] = {}
        """The times of the last `KEPT_UNITS` units, in the order of units."""
        self._written: set[int] = set()
        """Units after which a file was written, and before the next."""

    def reported(self, unit: int, at: float) -> None:
        """Note that a unit's value came."""
        self._times[unit] = at
        if len(self._times) > KEPT_UNITS:
            self._began = self._times.pop(next(iter(self._times)))

    def wrote(self, at: float) -> None:
        """Note a time at which a file was written, as soon as it is seen."""
        if (unit := self._position(at)) is not None:
            self._written.add(math.floor(unit))

    def unit_at(self, at: float) -> float | None:
        """Return the position at a time, such as 3.1 a little after the value of unit 3; None for an unknown one.

        A program that writes a file at each unit, the last one before the value of its last unit, writes them before
        it prints: the file is that unit's.
        """
        unit = self._position(at)
        if unit is None:
            return None
        last, part = next(reversed(self._times)), unit % 1
        if math.floor(unit) == last - 1 and last - 2 in self._written and part < 1 - CLEAR:
            return float(last) if part > CLEAR else last - 0.5
        return unit

    def _position(self, at: float) -> float | None:
        before, unit = self._began, None
        if not self._times or at < before:
            return None
        for unit, reported in self._times.items():
            if at < reported:
                return unit - 1 + (at - before) / (reported - before)
            before = reported
        return float(unit) if unit is not None else None
