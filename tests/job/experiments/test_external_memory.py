"""Figures of external memory: rows on disk, XGBoost by hand on them, and the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.external.by_hand import ByHand
from experiments.external.rows import generated
from experiments.external_memory import STATIC, in_turns, page_tables, targets
from experiments.shared.benchmark import targets_to_json


def test_by_hand_and_here_learn_the_same(tmp_path: Path) -> None:
    rows = generated(tmp_path / "rows", 3000, 5)
    found = in_turns(rows, tmp_path, 3, 3)
    assert {way: len(rates) for way, rates in found["turns"].items()} == {"on disk": 3, "in memory": 3, "by hand": 3}
    assert found["auc"]["on disk"] == found["auc"]["in memory"] == pytest.approx(found["auc"]["by hand"], abs=1e-6)
    seconds, auc = ByHand(rows, tmp_path / "again", STATIC).train(3)
    assert (seconds > 0, auc) == (True, found["auc"]["by hand"])
    kept = targets("turns", found)
    assert [target.limit for target in kept] == [0.95, 0.95, 0.0]
    assert "| on disk |" in page_tables({**found, "targets": targets_to_json(kept)})["turns"]
