"""What the documents show runs as it stands, in this process where they have workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray.util import placement_group, remove_placement_group

from tests.support.snippets import ROOT, blocks


def test_the_readmes_first_job_trains_on_workers(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On 2 of the cluster's 16 CPUs, as on a small machine: one gang fits."""
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path))
    names: dict[str, Any] = {"__name__": "shown"}
    others = placement_group([{"CPU": 14}])
    assert others.wait(120)
    try:
        exec(blocks(ROOT / "README.md")[1].code, names)
    finally:
        remove_placement_group(others)
    assert names["booster"].num_boosted_rounds() == 27
    assert names["tuner"].describe()["HyperParameterTuningJobStatus"] == "Completed"
