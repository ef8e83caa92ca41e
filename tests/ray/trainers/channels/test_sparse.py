"""Sparse rows in memory: shards stay CSR, an explicit 0 is no absent entry, and digests and copies tell them apart."""

from __future__ import annotations

from tests.support.trainers.channels.sparse import WHOLE, X, Y, shown
from trainers import Channel


def test_shards_in_ray_s_store_are_sparse(ray_cluster: None) -> None:
    placed = Channel.of((X, Y)).place(2)
    assert shown(placed.read(1, 2)) == WHOLE[1::2]
    assert shown(placed.read_whole()) == WHOLE
