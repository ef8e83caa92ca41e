"""Syne Tune on recorded curves, with the real package where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.shared.recorded_tasks import RecordedTask
from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.simulation import Curves, RecordedCurve

pytest.importorskip("syne_tune", reason="the extra baselines is not installed")

from experiments.baselines.syne_tune_on_curves import conformal, domain, kernels, simulate

UNITS = 9


def task(diverging: int = 0) -> RecordedTask:
    """A task of 300 curves, better with a larger x; some of the worst diverge at their third unit."""
    ranges = {
        "x": ContinuousParameter(1e-3, 1, "Logarithmic"),
        "y": ContinuousParameter(0, 0.9, "ReverseLogarithmic"),
        "layers": IntegerParameter(1, 5),
    }
    random = np.random.default_rng(5)
    recorded = []
    for number, x in enumerate(np.sort(10 ** random.uniform(-3, 0, size=300))):
        values = (np.log10(x) + 4) * (1 - 0.6 ** np.arange(1, UNITS + 1))
        values[2 if number < diverging else UNITS :] = np.nan
        recorded.append(
            RecordedCurve(
                configuration={
                    "x": float(x),
                    "y": float(random.uniform(0, 0.9)),
                    "layers": int(random.integers(1, 6)),
                },
                values=values.tolist(),
                seconds=list(range(1, UNITS + 1)),
            )
        )
    return RecordedTask(name="made", curves=Curves("made", ranges, recorded), ranges=ranges)


@pytest.mark.parametrize("make", [conformal, kernels])
def test_the_same_seed_sees_the_same_and_another_one_other_values(make: Any) -> None:
    """For long enough that the model suggests some: it does from the fifth trial on."""
    first = simulate(task(), make, seed=1, workers=2, seconds=1.5 * UNITS)
    assert simulate(task(), make, seed=1, workers=2, seconds=1.5 * UNITS) == first
    assert simulate(task(), make, seed=2, workers=2, seconds=1.5 * UNITS) != first


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
