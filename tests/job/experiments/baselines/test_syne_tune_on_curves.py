"""Syne Tune on recorded curves, with the real package where it is installed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.experiments.baselines.syne_tune_on_curves import UNITS, task

pytest.importorskip("syne_tune", reason="the extra baselines is not installed")

from experiments.baselines.syne_tune_on_curves import conformal, kernels, simulate


@pytest.mark.parametrize("make", [conformal, kernels])
def test_the_same_seed_sees_the_same_and_another_one_other_values(make: Any) -> None:
    """For long enough that the model suggests some: it does from the fifth trial on."""
    first = simulate(task(), make, seed=1, workers=2, seconds=1.5 * UNITS)
    assert simulate(task(), make, seed=1, workers=2, seconds=1.5 * UNITS) == first
    assert simulate(task(), make, seed=2, workers=2, seconds=1.5 * UNITS) != first
