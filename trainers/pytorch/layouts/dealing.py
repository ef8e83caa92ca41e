"""Makes what trains a model under each trial's layout: replicas over AllReduce, or shards."""

from __future__ import annotations

import torch

from trainers.gangs import Assignment, WorkerContext
from trainers.pytorch.distribution import Distribution, Peers
from trainers.pytorch.gradients import AllReduce
from trainers.pytorch.layouts.layout import Layout
from trainers.pytorch.layouts.parts import Groups, Parts


class LaidOut:
    """Distributions of a gang whose trials have layouts; see `trainers.pytorch.program.Distributing`.

    Args:
        layout: the trainer's; a trial's hyperparameters go before it.
        timeout_s: how long workers wait for each other, in seconds.
    """

    def __init__(self, layout: Layout, timeout_s: float) -> None:
        self._layout = layout
        self._timeout_s = timeout_s
        self._groups: Groups | None = None

    def open(self, context: WorkerContext) -> None:
        """See `Distributing.open`: the process group is all that it needs."""

    def join(self, peers: Peers, device: torch.device) -> None:
        """See `Distributing.join`."""
        self._groups = Groups(device, self._timeout_s)

    def parts(self, assignment: Assignment, peers: Peers) -> Parts:
        """See `Distributing.parts`."""
        assert self._groups is not None, "a gang joins before it serves"
        return self._groups.parts(self._layout.under(assignment.hyperparameters), peers)

    def distribution(self, assignment: Assignment, parts: Parts, updates: int) -> Distribution:
        """See `Distributing.distribution`."""
        if parts.mesh is None:
            return AllReduce(parts.gang)
        from trainers.pytorch.layouts.sharding import Sharded  # Others do not wait for FSDP's and DTensor's modules.

        return Sharded(parts)

    def forget(self) -> None:
        """See `Distributing.forget`."""
        if self._groups is not None:
            self._groups.forget()

    def close(self) -> None:
        """See `Distributing.close`."""
