"""Syne Tune on recorded curves, with the real package where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter
from tests.support.experiments.baselines.syne_tune_on_curves import UNITS, task

pytest.importorskip("syne_tune", reason="the extra baselines is not installed")

from experiments.baselines.syne_tune_on_curves import domain, kernels, simulate


def test_every_worker_trains_all_the_time() -> None:
    seen = simulate(task(), kernels, seed=1, workers=4, seconds=2 * UNITS)
    assert len(seen.seconds) == 4 * 2 * UNITS
    assert seen.best == sorted(seen.best)
    assert np.isnan(seen.best_at(0.5))


def test_a_trial_that_diverges_is_an_error_and_the_search_goes_on() -> None:
    seen = simulate(task(diverging=299), kernels, seed=1, workers=1, seconds=2 * UNITS)
    assert np.isfinite(seen.best).all()
    assert seen.seconds[-1] > UNITS


def test_ranges_keep_their_scale() -> None:
    assert str(domain(ContinuousParameter(1e-3, 1, "Logarithmic")).get_sampler()) == "LogUniform"
    near_one = domain(ContinuousParameter(0, 0.9, "ReverseLogarithmic"))
    assert (near_one.lower, near_one.upper) == pytest.approx((0.1, 1))
    whole = domain(IntegerParameter(1, 5))
    assert (whole.lower, whole.upper) == (1, 5)
    assert domain(CategoricalParameter(["a", "b"])).categories == ["a", "b"]
