"""DEHB on recorded curves, with the real package where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.shared.recorded_tasks import RecordedTask
from hpo import ContinuousParameter
from hpo.simulation import Curves, RecordedCurve

pytest.importorskip("dehb", reason="the extra baselines is not installed")

from experiments.baselines.dehb_on_curves import _search, decoded, encoded, simulate

UNITS = 9


def task(diverging: int = 0) -> RecordedTask:
    """A task of 300 curves, better to the right; some at the left diverge at their third unit."""
    ranges = {"x": ContinuousParameter(0, 1), "y": ContinuousParameter(0, 0.9, "ReverseLogarithmic")}
    random = np.random.default_rng(5)
    recorded = []
    for number, x in enumerate(np.sort(random.uniform(size=300))):
        values = x * (1 - 0.6 ** np.arange(1, UNITS + 1))
        values[2 if number < diverging else UNITS :] = np.nan
        recorded.append(
            RecordedCurve(
                configuration={"x": float(x), "y": float(random.uniform(0, 0.9))},
                values=values.tolist(),
                seconds=list(range(1, UNITS + 1)),
            )
        )
    return RecordedTask(name="made", curves=Curves("made", ranges, recorded), ranges=ranges)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_same_seed_sees_the_same_and_another_one_other_values(workers: int) -> None:
    first = simulate(task(), seed=1, workers=workers, seconds=8 * UNITS)
    assert simulate(task(), seed=1, workers=workers, seconds=8 * UNITS) == first
    assert simulate(task(), seed=2, workers=workers, seconds=8 * UNITS) != first


def test_every_worker_is_paid_each_unit_once() -> None:
    """Promoted configurations go on: one worker sees no more units than there are seconds."""
    seen = simulate(task(), seed=1, workers=1, seconds=20 * UNITS)
    assert len(set(seen.seconds)) > 18 * UNITS, "jobs that ask for nothing more take no time, and are few"
    assert seen.seconds[-1] <= 20 * UNITS
    assert seen.best == sorted(seen.best)
    assert np.isnan(seen.best_at(0.5))


def test_trainings_that_diverge_are_told_as_the_worst_and_never_seen() -> None:
    seen = simulate(task(diverging=299), seed=1, workers=4, seconds=10 * UNITS)
    assert np.isfinite(seen.best).all()
    assert seen.seconds[-1] > 9 * UNITS, "the search goes on"


def test_places_and_configurations_are_one_another_s_inverse() -> None:
    made = task()
    configuration = made.curves.configurations[7]
    assert decoded(made, encoded(made, configuration)) == pytest.approx(configuration)


def test_rungs_are_those_of_hyperband() -> None:
    with _search(task(), 1) as search:
        assert [round(each) for each in search.fidelities] == [1, 3, 9]
