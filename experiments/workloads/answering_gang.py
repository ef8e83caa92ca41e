"""One gang that serves what it is asked, errors included, and starts again where a trial has broken it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from trainers.gangs import Assignment, Event, GangEnded, GangLost, Gangs, GangUp, Served

SECONDS = 180.0
"""How long it may take to start, or to answer."""


class AnsweringGang:
    """A gang of a trainer's own kind.

    Args:
        gangs: where it comes from.
        hyperparameters: of every trial, unless it has others.
        folder: for models.
    """

    def __init__(self, gangs: Gangs, hyperparameters: Mapping[str, Any], folder: str) -> None:
        self._gangs, self._hyperparameters, self._folder = gangs, dict(hyperparameters), folder
        self._workers = 0
        self._served = 0
        self.up: GangUp | None = None
        """How it came up last."""
        self.lost = 0
        """How often it lost its workers."""

    def start(self, workers: int) -> None:
        """Waits until the gang is up."""
        self._workers = workers
        self._until(lambda event: isinstance(event, GangUp))

    def serve(self, units: int = 1, **changed: Any) -> Served:
        """Trains a trial; first waits for a gang that starts again.

        Raises:
            RuntimeError: it does not answer, or is lost with a trial.
        """
        if self.up is None:
            self._until(lambda event: isinstance(event, GangUp))
        assert self.up is not None
        self._served += 1
        trial = Assignment(
            trial_id=f"trial-{self._served}",
            hyperparameters={**self._hyperparameters, **changed},
            seed=1729,
            start=0,
            stop=units,
            checkpoint=None,
            save_to=f"{self._folder}/{self._served}",
        )
        self._gangs.assign(self.up.gang, trial)
        served = self._until(lambda event: isinstance(event, Served))
        assert isinstance(served, Served)
        return served

    def _until(self, done: Callable[[Event], bool]) -> Event:
        deadline, awaited = time.monotonic() + SECONDS, None
        while awaited is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"a gang did not answer within {SECONDS:g} s")
            self._gangs.want({self._workers: 1}, None)
            for event in self._gangs.events(0.5):
                self._note(event)
                awaited = event if done(event) else awaited
        return awaited

    def _note(self, event: Event) -> None:
        if isinstance(event, GangUp):
            self.up = event
        elif isinstance(event, GangLost):
            self.up = None
            self.lost += 1
        elif isinstance(event, GangEnded):
            raise RuntimeError(f"a gang ended: {event.error}")
