"""Meshes of a group that was left are let go of: tensors of a later one of the same sizes find their own group."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from trainers.pytorch.layouts.kept_meshes import let_go


def in_a_group(dims: tuple[int, ...] = (1, 1)) -> DeviceMesh:
    """A group of this process alone, and a mesh of it."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return init_device_mesh("cpu", dims, mesh_dim_names=("one", "two"))


def summed(mesh: DeviceMesh) -> float:
    tensor = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0), Shard(1)])
    return float((tensor * 2).sum().full_tensor())


@pytest.fixture(autouse=True)
def no_group() -> None:
    assert not dist.is_initialized()


def test_a_later_mesh_of_the_same_sizes_uses_its_own_group() -> None:
    try:
        for _ in range(2):
            mesh = in_a_group()
            assert summed(mesh) == 16.0
            assert mesh._pg_registry, "the attribute that keeps a mesh's groups has another name"
            let_go([mesh])
            assert not mesh._pg_registry
            dist.destroy_process_group()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
