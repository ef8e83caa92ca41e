"""What the cost of checkpoints in shards comes to, and that every way saves."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from experiments.checkpoint_cost import page_tables, ratio, targets
from experiments.shared.benchmark import targets_to_json
from experiments.workloads.checkpoint_ways import WAYS, Save
from tests.support.lines import line_with

SAVES = {
    way: [Save(still=1.0 + place, whole=8.0, size=1_200_000_000), Save(still=3.0 + place, whole=9.0, size=1)]
    for place, way in enumerate(WAYS)
}


def test_ratios_are_medians_within_turns() -> None:
    assert ratio(SAVES, "in the background", "torch.save on rank 0") == pytest.approx((1 / 3 + 3 / 5) / 2)


def test_the_page_has_a_line_for_each_way() -> None:
    kept = targets(SAVES)
    result = {
        "parameters": 97_600_000,
        "saves": {way: [asdict(save) for save in own] for way, own in SAVES.items()},
        "targets": targets_to_json(kept),
    }
    tables = page_tables(result)
    line_with(tables["saves"], "background", "2.00 s (1.00 to 3.00)", "8.50 s (8.00 to 9.00)", "1.20 GB")
    assert tables["promises"].count("\n") >= len(kept)
    assert tables["parameters"] == "98 million"
