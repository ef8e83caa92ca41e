"""A searcher of a user's own, which after some trials does something else than suggest."""

from __future__ import annotations

from typing import Any

from ray.tune.search import Searcher

AFTER: dict[str, Any] = {
    "nothing": None,
    "finished": Searcher.FINISHED,
    "outside": {"eta": 7.0, "max_depth": 3, "booster": "dart"},
}


class Wayward(Searcher):
    """Suggests the same values, and then something else.

    Args:
        trials: so many times.
        then: a key of `AFTER`.
    """

    def __init__(self, trials: int, then: str) -> None:
        super().__init__()
        self.left, self.then = trials, AFTER[then]

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        self._metric, self._mode = metric, mode
        return True

    def suggest(self, trial_id: str) -> Any:
        self.left -= 1
        return self.then if self.left < 0 else {"eta": 0.3, "max_depth": 3, "booster": "dart"}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        pass
