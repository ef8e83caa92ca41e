"""What workers hold of a model: the tables, and that shards hold less than replicas."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from experiments.layout_memory import CASES, Held, measured, page_tables, targets
from experiments.shared.benchmark import targets_to_json
from experiments.workloads.checkpoint_ways import Network

FOUND = [
    Held(workers=workers, layout=layout, steady=1.6e9 / (workers if "shard" in layout else 1), most=2e9)
    for workers, layout in CASES
]


def test_a_line_says_what_part_of_the_replicas_memory_a_layout_takes() -> None:
    kept = targets(FOUND)
    assert [target.measured for target in kept] == pytest.approx([0.5, 0.25])
    made = page_tables(
        {"parameters": 97_600_000, "held": [asdict(each) for each in FOUND], "targets": targets_to_json(kept)}
    )
    assert "| 4 | shard=4 | 0.40 GB | 0.25 | 2.00 GB |" in made["held"]
    assert made["parameters"] == "98 million"


@pytest.mark.long
@pytest.mark.ray
def test_a_worker_holds_what_its_layout_gives_it(ray_cluster: None) -> None:
    [shards] = measured(network := Network(width=256, layers=4, vocabulary=8192), CASES[1:2])
    piece = sum(parameter.nbytes for parameter in network.made().parameters()) / 2
    assert piece < shards.steady <= shards.most
