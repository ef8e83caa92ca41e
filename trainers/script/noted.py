"""Notes beside a program's checkpoint: whether it had ended by itself, and units that it was ahead of its rung."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from trainers.gangs import Assignment, Report
from trainers.script.restarts import Past

NOTES = "notes.json"
"""Their file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Notes of a trial, as its last assignment left them.

    Args:
        ended: the program ended by itself.
        last: the metrics of the last report.
        ahead: reports of units behind the rung, which the program's checkpoint may hold; with one of a step further
            on, those between have its values.
        hyperparameters: that they were trained with.
        past: facts by which the units of the next run are counted.
    """

    ended: bool = False
    last: Mapping[str, float]
    ahead: tuple[Report, ...] = ()
    hyperparameters: Mapping[str, Any]
    past: Past = field(default_factory=Past)

    @classmethod
    def none(cls) -> Self:
        """Those of a trial that begins."""
        return cls(last={}, hyperparameters={})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Those in a folder, or none."""
        path = folder / NOTES
        if not path.exists():
            return cls.none()
        kept = json.loads(path.read_text(encoding="utf-8"))
        ahead = tuple(Report(step=step, metrics=metrics) for step, metrics in kept.pop("ahead"))
        past = kept.pop("past")
        past["values"] = {int(unit): metrics for unit, metrics in past["values"].items()}
        return cls(ahead=ahead, past=Past(**past), **kept)

    def to_bytes(self) -> bytes:
        """For `NOTES`."""
        ahead = [(report.step, report.metrics) for report in self.ahead]
        kept = {"ended": self.ended, "last": dict(self.last), "ahead": ahead, "past": asdict(self.past)}
        return json.dumps({**kept, "hyperparameters": dict(self.hyperparameters)}).encode()

    def known(self, assignment: Assignment) -> list[Report]:
        """Reports of an assignment's units that need not be trained: those that it was ahead, or all, where it ended.

        A trial that goes on with other hyperparameters, as a fork does, has none of the values that it was ahead.
        """
        if not self._are_of(assignment):
            return []
        reports: list[Report] = []
        for each in self.ahead:  # A step further on fills those between.
            first = reports[-1].step + 1 if reports else assignment.start + 1
            reports += [replace(each, step=step) for step in range(first, min(each.step, assignment.stop) + 1)]
        if self.ended:
            last = reports[-1] if reports else Report(step=assignment.start, metrics=dict(self.last))
            reports += [replace(last, step=step) for step in range(last.step + 1, assignment.stop + 1)]
        return reports

    def had(self, assignment: Assignment) -> Report | None:
        """The last report of a trial that goes on: its values count where the program has nothing left to train.

        Of a fork they are those of its parent's checkpoint, which may be ahead of the units that it began from. None
        for a trial that begins.
        """
        if not assignment.start or not self.last:
            return None
        ahead = not self._are_of(assignment) and self.ahead
        return Report(step=assignment.start, metrics=dict(self.ahead[-1].metrics if ahead else self.last))

    def past_of(self, assignment: Assignment) -> Past:
        """Facts for an assignment: a fork with other hyperparameters has none of its parent's values."""
        return self.past if self._are_of(assignment) else replace(self.past, values={})

    def _are_of(self, assignment: Assignment) -> bool:
        # As text: NaN is the same as NaN there.
        return json.dumps(dict(assignment.hyperparameters)) == json.dumps(self.hyperparameters)
