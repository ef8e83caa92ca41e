"""One worker's copy of the parameters, which its neighbours on the ring average with theirs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from trainers.parameter_server.server import Line


class Replica:
    """The parameters of one worker between its steps, in buffers of one type each, on the processor.

    Averaging adds half of a difference on either side, so that the sum over all workers stays what it was, whatever
    happens to a copy while another one is under way.

    Args:
        values: the buffers.
        rate: bytes a second of the worker's link each way, for both neighbours together; None: no limit.
    """

    def __init__(self, values: Sequence[Tensor], rate: float | None = None) -> None:
        self.values = list(values)
        self.lock = threading.RLock()
        """Whoever changes it holds it."""
        self.visits = 0
        """Averagings that neighbours have made with it."""
        self.up, self.down = Line(rate), Line(rate)
        self._half = [torch.empty_like(values) for values in self.values]

    @property
    def bytes(self) -> int:
        """Of all buffers."""
        return sum(values.nbytes for values in self.values)

    def visit(self, theirs: Sequence[Tensor], before: Sequence[Tensor]) -> None:
        """A neighbour's averaging.

        Args:
            theirs: the neighbour's values.
            before: filled with the values that were here, for the neighbour's own half.
        """
        with self.lock:
            for mine, copy in zip(self.values, before, strict=True):
                copy.copy_(mine)
            self.approach(before, theirs)
            self.visits += 1

    def approach(self, mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
        """Adds half of the difference between two copies of the past, `theirs` and this one's as it was: `mine`."""
        with self.lock:
            for values, ours, others, half in zip(self.values, mine, theirs, self._half, strict=True):
                torch.sub(others, ours, out=half)
                values.add_(half, alpha=0.5)
