"""Jobs over ranges of every kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, NormalParameter
from hpo.report import JobData
from tests.support.records import by_function

MIXED = {
    "rate": ContinuousParameter(1e-4, 1.0, "Logarithmic"),
    "keep": ContinuousParameter(0.5, 0.999, "ReverseLogarithmic"),
    "width": IntegerParameter(8, 64, step=8),
    "drop": NormalParameter(0.0, 1.0),
    "kind": CategoricalParameter([True, 1, "1", None]),
    "same": ContinuousParameter(0.5, 0.5),
}


def drawn(count: int, ranges: Any = MIXED) -> list[dict[str, Any]]:
    places = np.random.default_rng(4).random((count, len(ranges)))
    return [{name: b.at(float(x)) for (name, b), x in zip(ranges.items(), row, strict=True)} for row in places]


def mixed(count: int, **options: Any) -> JobData:
    return by_function(lambda x: -((math.log10(x["rate"]) + 2) ** 2) - x["width"] / 64, drawn(count), MIXED, **options)
