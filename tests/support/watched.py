"""A watcher of a simulated job."""

from __future__ import annotations

from typing import Any

from hpo.observers.progress import Progress
from tests.support.simulated import Kept


class Watched(Kept):
    """Hands all that happens to a watcher, on the simulation's clock."""

    def __init__(self, make: Any) -> None:
        super().__init__()
        self.now = 0.0
        self.watcher: Progress = make(lambda: self.now)
        self.trial = self.watcher.trial  # type: ignore[method-assign]
        self.reports = self.watcher.reports  # type: ignore[method-assign]
        self.rung = self.watcher.rung  # type: ignore[method-assign]

    def progress(self, state: Any) -> None:
        self.now = state.seconds
        self.watcher.progress(state)
