"""What the cost of checkpoints in shards comes to, and that every way saves."""

from __future__ import annotations

from pathlib import Path

from experiments.checkpoint_cost import SMALL
from experiments.workloads.checkpoint_ways import WAYS, measured


def test_every_way_saves_a_small_network(tmp_path: Path) -> None:
    parameters, saves = measured(SMALL, workers=2, turns=1, folder=tmp_path)
    assert list(saves) == list(WAYS)
    for [save] in saves.values():
        assert 0 < save.still <= save.whole
        assert save.size > 12 * parameters
