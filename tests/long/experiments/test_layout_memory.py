"""What workers hold of a model: the tables, and that shards hold less than replicas."""

from __future__ import annotations

from experiments.layout_memory import CASES, measured
from experiments.workloads.checkpoint_ways import Network


def test_a_worker_holds_what_its_layout_gives_it(ray_cluster: None) -> None:
    [shards] = measured(network := Network(width=256, layers=4, vocabulary=8192), CASES[1:2])
    piece = sum(parameter.nbytes for parameter in network.made().parameters()) / 2
    assert piece < shards.steady <= shards.most
