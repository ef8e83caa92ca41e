"""The objective of units whose report lacks it: validation every second epoch, say."""

from __future__ import annotations

import math
from dataclasses import replace

from trainers.gangs import Report


class CarriedObjective:
    """Completes reports: one without the objective has the value before it, or waits for the first value.

    Args:
        name: of the objective; empty where there is none, or where another rank's word counts.
        value: at the last unit before; NaN where there is none.
    """

    def __init__(self, name: str, value: float) -> None:
        self._name, self._value = name, value
        self._waiting: list[Report] = []

    @property
    def known(self) -> bool:
        """Whether reports are complete."""
        return not self._name or not math.isnan(self._value)

    def take(self, report: Report) -> list[Report]:
        """Take a report; return those that are complete now, in their order."""
        self._value = report.metrics.get(self._name, self._value)
        self._waiting.append(report)
        if not self.known:
            return []
        ready, self._waiting = self._waiting, []
        return [replace(each, metrics=self.filled(each.metrics)) for each in ready]

    def filled(self, metrics: dict[str, float]) -> dict[str, float]:
        """Return metrics with the objective."""
        return metrics if not self._name or self._name in metrics else {**metrics, self._name: self._value}
