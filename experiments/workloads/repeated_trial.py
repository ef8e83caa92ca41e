"""One trial again and again on a warm gang."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainers.gangs import Assignment, Gangs, GangUp, Progress, Segment, Served


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One training.

    Args:
        seconds: from handing out the assignment until its result was there, its model written.
        starting: of these, until rank 0's first training step.
        segment: what the gang answered.
    """

    seconds: float
    starting: float
    segment: Segment


class RepeatedTrial:
    """A trial on a gang of a trainer's own kind.

    Args:
        gangs: where the gang comes from.
        hyperparameters: of the trial, unless a turn has others.
        units: of resource, likewise.
        folder: for models, one a turn.
        seed: of the trial.
        objective: of the trial, by which a program's units are counted.
    """

    def __init__(
        self,
        gangs: Gangs,
        hyperparameters: Mapping[str, Any],
        units: int,
        folder: str,
        seed: int = 1729,
        objective: str = "",
    ) -> None:
        self._gangs, self._hyperparameters, self._units = gangs, hyperparameters, units
        self._folder, self._seed, self._objective = folder, seed, objective
        self._gang = ""
        self._turns = 0
        self.niceness = 0
        """Of the gang's workers, which is Ray's choice."""

    def assignment(self, changed: Mapping[str, Any] | None = None, units: int | None = None) -> Assignment:
        """The trial once more, its model to a place of its own."""
        return Assignment(
            trial_id=f"turn-{self._turns}",
            hyperparameters={**self._hyperparameters, **(changed or {})},
            seed=self._seed,
            start=0,
            stop=units or self._units,
            checkpoint=None,
            save_to=f"{self._folder}/{self._turns}",
            objective=self._objective,
        )

    def start(self, workers: int = 1) -> None:
        """Waits until the gang of so many workers is up."""
        self._gangs.want({workers: 1}, None)
        while not self._gang:
            for event in self._gangs.events(1.0):
                if isinstance(event, GangUp):
                    self._gang = event.gang
                    self.niceness = max((os.getpriority(os.PRIO_PROCESS, pid) for pid in event.pids), default=0)

    def train(self, changed: Mapping[str, Any] | None = None, units: int | None = None) -> Turn:
        """Trains it once.

        Args:
            changed: hyperparameters that this turn has instead.
            units: of resource, where they are not the trial's.
        """
        self._turns += 1
        handed_out, began = time.time(), time.perf_counter()
        self._gangs.assign(self._gang, self.assignment(changed, units))
        while True:
            for event in self._gangs.events(1.0):
                match event:
                    case Served(segment=Segment() as segment):
                        seconds = time.perf_counter() - began
                        return Turn(seconds=seconds, starting=segment.first_step_at - handed_out, segment=segment)
                    case Progress():
                        pass
                    case _:
                        raise RuntimeError(f"a gang did not serve, so nothing was measured: {event}")
