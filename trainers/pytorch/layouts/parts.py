"""`Parts`: the workers of a gang as a layout groups them, and the groups in which they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from trainers.pytorch.distribution import Peers
from trainers.pytorch.gradients import ProcessGroup
from trainers.pytorch.layouts.kept_meshes import let_go
from trainers.pytorch.layouts.layout import Layout

DIMENSIONS = ("pipeline", "replicate", "shard", "tensor")
"""Of the mesh, the outermost first: workers of neighbouring ranks, on one node, talk the most."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a layout makes of a gang.

    Args:
        layout: with its number of replicas.
        gang: all workers.
        data: this worker's data-parallel part among the others; its workers see the same rows.
        mesh: of all workers, with `DIMENSIONS`; None where every worker holds the whole model.
    """

    layout: Layout
    gang: Peers
    data: Peers
    mesh: DeviceMesh | None = None

    @property
    def holds_all(self) -> bool:
        """Whether this worker writes checkpoints, and has all of the model."""
        return self.gang.rank == 0 and self.layout.is_replicas

    @classmethod
    def replicas(cls, gang: Peers) -> Parts:
        """Workers that each hold the whole model."""
        return cls(layout=Layout(replicate=gang.world_size), gang=gang, data=gang)


class Groups:
    """The parts of a gang under each layout that it has served; process groups are made once a layout.

    Args:
        device: what the worker trains on.
        timeout_s: how long workers wait for each other, in seconds.
    """

    def __init__(self, device: torch.device, timeout_s: float) -> None:
        self._device = device
        self._timeout_s = timeout_s
        self._generation = -1
        self._made: dict[tuple[int, ...], tuple[DeviceMesh, Peers]] = {}

    def parts(self, layout: Layout, gang: Peers) -> Parts:
        """The parts under a layout; every worker asks for the same one at the same time.

        Raises:
            ConfigurationError: the layout is not one of so many workers.
        """
        layout = layout.on(gang.world_size)
        if layout.is_replicas or not isinstance(gang, ProcessGroup):
            return Parts(layout=layout, gang=gang, data=gang)
        if gang.generation != self._generation:  # The groups of the one before are gone with it.
            self.forget()
            self._generation = gang.generation
        sizes = (layout.pipeline, layout.replicate or 1, layout.shard, layout.tensor)
        if sizes not in self._made:
            mesh = init_device_mesh(self._device.type, sizes, mesh_dim_names=DIMENSIONS)
            for group in mesh.get_all_groups():  # Else peers would wait for PyTorch's half an hour.
                group.set_timeout(timedelta(seconds=self._timeout_s))
            self._made[sizes] = mesh, self._data_peers(gang, sizes)
        mesh, data = self._made[sizes]
        return Parts(layout=layout, gang=gang, data=data, mesh=mesh)

    def forget(self) -> None:
        """Lets go of the groups that were made, so that nothing keeps their connections when they are left."""
        if self._made:
            let_go(mesh for mesh, _ in self._made.values())
        self._made.clear()

    def _data_peers(self, gang: ProcessGroup, sizes: Sequence[int]) -> Peers:
        pipeline, tensor = sizes[0], sizes[3]
        ranks = torch.arange(gang.world_size).view(pipeline, -1, tensor)
        members: list[list[int]] = ranks.movedim(1, -1).reshape(pipeline * tensor, -1).tolist()
        group, _ = dist.new_subgroups_by_enumeration(members, timeout=timedelta(seconds=self._timeout_s))
        mine = next(of for of in members if gang.rank in of)
        return DataPeers(gang, group, mine.index(gang.rank), len(mine), self._device)


class DataPeers:
    """Data-parallel parts as one of their workers sees them; see `trainers.pytorch.distribution.Peers`.

    Its peers are the workers at the same place of the other parts: with the same piece of the model, and other rows.

    Args:
        gang: all workers, which meet.
        group: of these.
        rank: of this worker's part.
        world_size: how many parts there are.
        device: what the worker trains on.
    """

    def __init__(
        self, gang: ProcessGroup, group: dist.ProcessGroup, rank: int, world_size: int, device: torch.device
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self.group = group
        self._gang = gang
        self._device = device

    def sum(self, values: Tensor) -> Tensor:
        """See `Peers.sum`; each part counts once, however many workers it has."""
        total = values.detach().clone().to(self._device)
        self._gang.meet("context.sum")
        dist.all_reduce(total, group=self.group)
        return total

    def broadcast(self, values: Tensor) -> None:
        """See `Peers.broadcast`."""
        self._gang.meet("the values of the first part")
        dist.broadcast(values, group=self.group, group_src=0)

    def gather(self, value: Any) -> list[Any]:
        """See `Peers.gather`."""
        self._gang.meet("every part's state")
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.group)
        return values

    def meet(self, what: str, answer: bool = False) -> bool:
        """See `Peers.meet`: of all workers."""
        return self._gang.meet(what, answer)
