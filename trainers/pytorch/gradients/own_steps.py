"""Refusal of a function's own optimizer steps, which would train one worker's parameters alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from trainers.errors import TrialError
from trainers.pytorch.distribution import Distribution, Peers


@contextmanager
def refused(distribution: Distribution, peers: Peers, ours: Callable[[], bool]) -> Iterator[None]:
    """Refuses them in this thread while a function runs, unless all workers take them alike.

    Args:
        distribution: how updates are made.
        peers: the gang's workers.
        ours: whether a step that is being taken is the distribution's own.
    """
    if distribution.takes_own_steps:
        yield
        return
    # Workers that are simulated are threads of one process.
    mine = threading.get_ident()

    def check(optimizer: Optimizer, *_: Any) -> None:
        if threading.get_ident() == mine and not ours():
            raise TrialError(
                f"rank {peers.rank} of {peers.world_size} called {type(optimizer).__name__}.step() itself, which would "
                "train a model of its own on each worker; call context.step(loss, optimizer) in place of "
                "loss.backward() and optimizer.step()"
            )

    handle = register_optimizer_step_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()
