"""Halting of XGBoost between two rungs: the rounds at which workers decide together, and exact continuation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

LOOK_SECONDS = 0.5
"""About how far apart two looks are, so that a long training pays next to nothing for them."""

FASTER = 4
"""How much longer the way to the next look may get at once: rounds may become slower than the first ones."""


_SAMPLING = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")


def goes_on_exactly(hyperparameters: Mapping[str, Any]) -> bool:
    """Whether a booster that is loaded in any round trains on to the same bytes.

    It does not where training draws random numbers, whose state is in no model; and trees on a CPU are all that this
    was tried on.
    """
    hyperparameters = {name: value for name, value in hyperparameters.items() if value is not None}
    return (
        all(float(hyperparameters.get(name, 1)) >= 1 for name in _SAMPLING)
        and hyperparameters.get("booster", "gbtree") == "gbtree"
        and hyperparameters.get("process_type", "default") == "default"
        and hyperparameters.get("device", "cpu") == "cpu"
    )


class Looks:
    """Rank 0 knows whether to halt; the others hear of it in a small AllReduce, in rounds that all of them know.

    The first look is after the first round. Each look says after how many rounds the next one is: as many as fit into
    `LOOK_SECONDS`, by rank 0's clock.

    Args:
        halted: whether to halt; asked on rank 0 alone.
        rank: of this worker.
        world_size: how many there are.
        start: rounds before this assignment.
    """

    def __init__(self, halted: Callable[[], bool], *, rank: int, world_size: int, start: int) -> None:
        self._halted = halted
        self._rank = rank
        self._world_size = world_size
        self._next = start + 1
        self._ahead = 1
        self._since = time.monotonic()

    def halt(self, step: int) -> bool:
        """Whether to end with this round; every worker asks after every round."""
        if step < self._next:
            return False
        halt, self._ahead = self._agreed(self._halted() if self._rank == 0 else False)
        self._next = step + self._ahead
        return halt

    def _agreed(self, mine: bool) -> tuple[bool, int]:
        now = time.monotonic()
        a_round = (now - self._since) / self._ahead
        self._since = now
        ahead = max(1, min(FASTER * self._ahead, int(LOOK_SECONDS / max(a_round, 1e-6))))
        if self._world_size == 1:
            return mine, ahead
        import numpy as np
        from xgboost import collective

        word = [int(mine), ahead] if self._rank == 0 else [0, 0]
        halt, ahead = collective.allreduce(np.array(word), collective.Op.MAX)
        return bool(halt), int(ahead)
