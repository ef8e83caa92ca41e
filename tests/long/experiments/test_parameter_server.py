"""What the parameter server's benchmark makes of its measurements; that both sides make the same updates."""

from __future__ import annotations

from pathlib import Path


def test_a_worker_on_ray_is_measured_by_turns(ray_cluster: None, tmp_path: Path) -> None:
    from experiments.parameter_server import by_turns

    rates = by_turns(1, 1, 3, str(tmp_path))
    assert {how: len(found) for how, found in rates.items()} == {"1 server": 1, "2 servers": 1, "plain Ray actor": 1}
    assert min(min(found) for found in rates.values()) > 0
