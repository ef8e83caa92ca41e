"""Ranges with conditions on each other."""

from __future__ import annotations

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, NormalParameter, ParameterRange

RANGES: dict[str, ParameterRange] = {
    "momentum": ContinuousParameter(0.5, 0.99, when={"optimizer": "sgd"}),
    "optimizer": CategoricalParameter(["sgd", "adam", "none"]),
    "nesterov": CategoricalParameter([True, False], when={"optimizer": ["sgd"], "layers": [2, 3]}),
    "decay": NormalParameter(-7, 1, "Logarithmic", when={"nesterov": [True]}),
    "layers": IntegerParameter(1, 3),
    "units": IntegerParameter(32, 96, step=32, when={"layers": [3]}),
}
GRID = {name: bounds for name, bounds in RANGES.items() if bounds.size is not None}
