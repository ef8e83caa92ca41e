"""Small tables of recorded curves, for the tests of simulated searches."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pandas as pd

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.simulation import Curves, RecordedCurve

RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
    "max_depth": IntegerParameter(1, 6),
    "booster": CategoricalParameter(["gbtree", "dart"]),
}
UNITS = 9


def recorded(count: int = 60, *, diverged: int = 0, units: int = UNITS) -> list[RecordedCurve]:
    """Curves that rise towards a height of their own; the first `diverged` of them diverge in unit 3."""
    stream, made = random.Random(7), []
    for number in range(count):
        eta, depth = 10 ** stream.uniform(-3, 0), stream.randint(1, 6)
        height = 1 - abs(math.log10(eta) + 1) / 3 - abs(depth - 4) / 20
        values = [height * (1 - 0.7**unit) for unit in range(1, units + 1)]
        if number < diverged:
            values[2:] = [math.nan] * (units - 2)
        made.append(
            RecordedCurve(
                configuration={"eta": eta, "max_depth": depth, "booster": stream.choice(["gbtree", "dart"])},
                values=values,
                seconds=[2.0 * unit for unit in range(1, units + 1)],
            )
        )
    return made


def table(count: int = 60, *, diverged: int = 0, units: int = UNITS) -> Curves:
    """The same as a table."""
    return Curves("made", RANGES, recorded(count, diverged=diverged, units=units))


def frame(curves: list[RecordedCurve]) -> pd.DataFrame:
    """Curves as the rows of a file."""
    return pd.DataFrame(
        [
            {"trial": number, "unit": unit, "seconds": seconds, "value": value, **curve.configuration}
            for number, curve in enumerate(curves)
            for unit, (value, seconds) in enumerate(zip(curve.values, curve.seconds, strict=True), 1)
        ]
    )


def write(curves: list[RecordedCurve], path: Path) -> Path:
    """Writes a CSV file of curves."""
    frame(curves).to_csv(path, index=False)
    return path
