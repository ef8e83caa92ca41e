"""Grid search as a Ray Tune searcher; a configuration depends on the ranges and its number alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from ray.tune.search import Searcher

from hpo.ranges import ParameterRange, Scalar, combinations, encode


class GridSearch(Searcher):
    """Suggests every combination once, in the order of `combinations`.

    Args:
        ranges: a range a tuned hyperparameter, each of which has a `size`.
        metric: the name of the objective. Grid search does not look at it; Ray Tune asks for it.
        mode: "min" or "max".
    """

    def __init__(
        self, ranges: Mapping[str, ParameterRange], *, metric: str | None = None, mode: str | None = None
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._ranges = dict(ranges)
        self._left: Iterator[dict[str, Scalar]] = combinations(self._ranges)
        self._suggested = 0

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The next combination, whichever trial it is for; `FINISHED` behind the last."""
        values = next(self._left, None)
        if values is None:
            return Searcher.FINISHED  # type: ignore[return-value]  # a string, against its own annotation
        self._suggested += 1
        return encode(self._ranges, values)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: no result changes what comes next."""

    def save(self, checkpoint_path: str) -> None:
        """Writes where the search is to a file, as JSON."""
        Path(checkpoint_path).write_text(json.dumps({"suggested": self._suggested}))

    def restore(self, checkpoint_path: str) -> None:
        """Goes on where the search that wrote the file was."""
        self._suggested = json.loads(Path(checkpoint_path).read_text())["suggested"]
        self._left = islice(combinations(self._ranges), self._suggested, None)
