"""What workers hold of a model: the tables, and that shards hold less than replicas."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from experiments.layout_memory import CASES, Held, page_tables, targets
from experiments.shared.benchmark import targets_to_json

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
