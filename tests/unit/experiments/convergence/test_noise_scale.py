"""Noise scales out of what was measured by seed and epoch, by hand."""

from __future__ import annotations

import json
import math

from experiments.convergence.cases import Outcome
from experiments.convergence.noise_scale import NoiseScale, scales


def test_by_hand() -> None:
    """Two seeds, of which one ended early: their means are divided, not their ratios averaged."""
    found = NoiseScale.of([[1.0, 0.5], [3.0]], [[200.0, 100.0], [200.0]], 400)
    assert found is not None
    assert found.by_unit == [100.0, 200.0]
    assert (found.last, found.against_signal) == (200.0, 0.5)
    assert found.to_json()["noise_against_signal"] == 0.5


def test_a_gradient_that_is_lost_in_its_noise_has_no_scale() -> None:
    found = NoiseScale.of([[1.0, -0.5]], [[100.0, 100.0]], 100)
    assert found is not None
    assert found.by_unit[0] == 100
    assert math.isnan(found.last)
    assert math.isnan(found.against_signal)


def test_what_is_not_finite_is_left_out() -> None:
    found = NoiseScale.of([[math.nan], [2.0]], [[math.inf], [8.0]], 1)
    assert found is not None
    assert found.last == 4.0
    none = NoiseScale.of([[math.nan]], [[math.nan]], 1)
    assert none is not None
    assert math.isnan(none.last)


def test_ways_without_a_measurement_are_left_out() -> None:
    seen, not_seen = Outcome(curve=[0.5], signal=[1.0], noise=[2.0]), Outcome(curve=[0.5])
    assert list(scales({"one worker": ([seen], 100), "distributed": ([not_seen], 400)})) == ["one worker"]
    kept = json.loads(json.dumps(scales({"one worker": ([seen], 100)})["one worker"].to_json()))
    assert kept == {"rows": 100, "signal": [1.0], "noise": [2.0], "scale": [2.0], "noise_against_signal": 0.02}
