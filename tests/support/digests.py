"""A search whose suggestions are digests of all that they read, so that any difference in it shows."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from hpo.ranges import Scalar
from hpo.strategies.openings import Openings, by_number
from hpo.strategies.random_strategy import at_random
from hpo.strategies.searchers.history import History
from hpo.strategies.searchers.model_search import ModelSearch
from hpo.strategies.strategy import Prepared, Task

LAG = 4


class DigestSearch(ModelSearch):
    """Stands where a model would, from the first trial that can read anything on."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._first = self._history.reads(1)

    def compute(self, number: int) -> dict[str, Scalar]:
        digest = hashlib.blake2b(
            repr((number, self._history.read(number))).encode(), digest_size=16 * self._space.sides
        ).digest()
        parts = [digest[16 * side : 16 * side + 8] for side in range(self._space.sides)]
        return self._space.hyperparameters([int.from_bytes(part, "big") / 2**64 for part in parts])


def by_digest(task: Task, openings: Openings | None = None) -> Prepared:
    """The strategy of such a search; results open by number where nothing else is said."""
    history = History(task.plan, openings or by_number(task.plan, LAG))
    searcher = DigestSearch(task.ranges, task.plan, metric=task.metric, mode=task.mode, seed=task.seed, history=history)
    return replace(at_random(task), searcher=searcher)
