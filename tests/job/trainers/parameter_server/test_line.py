"""A server's link that carries one transfer after another: by hand, as a property, and in both kinds of training."""

from __future__ import annotations

import pytest
import torch

from tests.support.server_workers import Training
from trainers.parameter_server.settings import Settings
from trainers.parameter_server.simulation.workers import simulate


@pytest.mark.parametrize("mode", ["sync", "async", "bounded"])
def test_the_same_seed_gives_the_same_bytes(mode: str) -> None:
    settings = Settings.of({"mode": mode, "link_bytes_per_second": 1e5}, 4)
    first, again, other = (simulate(Training(), settings, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first[0].weights, again[0].weights)
    assert first[0].details == again[0].details
    assert torch.equal(first[0].weights, other[0].weights) == (mode == "sync")
