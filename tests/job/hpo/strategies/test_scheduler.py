"""Hyperband in Ray Tune. What the stock scheduler gets wrong is shown on both classes: it fails there, strictly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.hpo.strategies.scheduler import both
from tests.support.simulated import PLAN, simulate


@both
@pytest.mark.parametrize("parallel", [1, 2])
def test_few_trials_at_once_are_still_stopped_early(scheduler: Any, parallel: int) -> None:
    """Stock: brackets fill from the one that stops nothing, and are halved with only `parallel` trials in them."""
    controller, _, _ = simulate(scheduler(), parallel=parallel, untuned=False)
    assert controller.trained <= 0.41 * PLAN.full_resource
