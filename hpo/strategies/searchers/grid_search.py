"""Grid search as a Ray Tune searcher; a configuration depends on the ranges and its number alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from ray.tune.search import Searcher


class GridSearch(Searcher):
    """Suggests every combination once: hyperparameters in the order of their names, the last changing fastest.

    Args:
        points: what to try of each hyperparameter, by name.
        metric: the name of the objective. Grid search does not look at it; Ray Tune asks for it.
        mode: "min" or "max".
    """

    def __init__(
        self, points: Mapping[str, Sequence[Any]], *, metric: str | None = None, mode: str | None = None
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._points = dict(points)
        self._suggested = 0

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The next combination, whichever trial it is for; `FINISHED` behind the last."""
        left, place = self._suggested, {}
        # In the order of names, so that the order in which the ranges were written or restored does not matter.
        for name in sorted(self._points, reverse=True):
            left, place[name] = divmod(left, len(self._points[name]))
        if left:
            return Searcher.FINISHED  # type: ignore[return-value]  # a string, against its own annotation
        self._suggested += 1
        return {name: points[place[name]] for name, points in self._points.items()}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: no result changes what comes next."""

    def save(self, checkpoint_path: str) -> None:
        """Writes where the search is to a file, as JSON."""
        Path(checkpoint_path).write_text(json.dumps({"suggested": self._suggested}))

    def restore(self, checkpoint_path: str) -> None:
        """Goes on where the search that wrote the file was."""
        self._suggested = json.loads(Path(checkpoint_path).read_text())["suggested"]
