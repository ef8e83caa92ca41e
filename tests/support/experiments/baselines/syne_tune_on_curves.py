"""A recorded task for Syne Tune."""

from __future__ import annotations

import numpy as np

from experiments.shared.recorded_tasks import RecordedTask
from hpo import ContinuousParameter, IntegerParameter
from hpo.simulation import Curves, RecordedCurve

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
