"""Adapter of what PyTorch keeps of device meshes: the connections of their groups, and results that name them.

Both are private. Tested with torch 2.13.0; test_kept_meshes.py and test_sharding.py fail where they change.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.distributed.device_mesh import DeviceMesh


def let_go(meshes: Iterable[DeviceMesh]) -> None:
    """Lets go of meshes, so that nothing keeps the connections of their groups once these are left.

    The sharding of each operation's result is kept with the mesh that it was first computed on. Meshes of the same
    sizes count as equal, so that tensors of a later one would ask for a group of the former.

    Args:
        meshes: whole ones, whose groups are about to be left.
    """
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache

    for mesh in meshes:
        mesh._pg_registry.clear()
    _clear_sharding_prop_cache()
