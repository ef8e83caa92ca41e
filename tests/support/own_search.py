"""A searcher of a user's own, which after some trials does something else than suggest."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

AFTER: dict[str, Any] = {
    "nothing": None,
    "finished": Searcher.FINISHED,
    "outside": {"eta": 7.0, "max_depth": 3, "booster": "dart"},
    "nan": {"eta": math.nan, "max_depth": 3, "booster": "dart"},
    "raises": ZeroDivisionError("by zero"),
}


class Wayward(Searcher):
    """Suggests the same values, and then something else.

    Args:
        trials: so many times.
        then: a key of `AFTER`.
        mended: a file; where it is there, nothing else is suggested.
    """

    def __init__(self, trials: int, then: str, mended: str = "") -> None:
        super().__init__()
        self.left, self.then, self.mended = trials, AFTER[then], mended

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        self._metric, self._mode = metric, mode
        return True

    def suggest(self, trial_id: str) -> Any:
        self.left -= 1
        if self.left >= 0 or (self.mended and Path(self.mended).exists()):
            return {"eta": 0.3, "max_depth": 3, "booster": "dart"}
        if isinstance(self.then, Exception):
            raise self.then
        return self.then

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        pass
