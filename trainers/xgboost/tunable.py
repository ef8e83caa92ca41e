"""XGBoost's hyperparameters that are worth tuning, and bounds that suit most data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from trainers.tunable import Tunable
from trainers.xgboost.parameters import ALIASES

USUAL_ROUNDS = 100

_SLOWEST = 0.01
"""The least step worth its rounds, however many there are."""

TREES = {
    "eta": Tunable(least=_SLOWEST, most=0.5, scale="Logarithmic", why="small steps need many rounds"),
    "max_depth": Tunable(least=2, most=10, whole=True, why="from pairs of features to trees that fit noise"),
    "min_child_weight": Tunable(least=1, most=100, scale="Logarithmic", why="rows, or their weight, in a leaf"),
    "gamma": Tunable(least=0, most=5, why="the loss that a split has to save"),
    "subsample": Tunable(least=0.5, most=1, why="rows that a tree sees"),
    "colsample_bytree": Tunable(least=0.3, most=1, why="columns that a tree sees"),
    "lambda": Tunable(least=0.01, most=100, scale="Logarithmic", why="squared weights of leaves"),
    "alpha": Tunable(least=0.001, most=10, scale="Logarithmic", why="absolute weights of leaves"),
}
"""Those of trees.

Sources: Amazon SageMaker Developer Guide, "Tune an XGBoost model" (which names them); Probst, Boulesteix, Bischl,
"Tunability: Importance of Hyperparameters of Machine Learning Algorithms" (JMLR 20, 2019), table 1, for scales.
"""

LINEAR = {
    "eta": Tunable(least=_SLOWEST, most=1, scale="Logarithmic", why="the step of a round"),
    "lambda": Tunable(least=1e-4, most=10, scale="Logarithmic", why="squared weights"),
    "alpha": Tunable(least=1e-4, most=10, scale="Logarithmic", why="absolute weights"),
}
"""Those of a linear booster."""


def tunable(static: Mapping[str, Any], ranged: Collection[str], rounds: int | None) -> dict[str, Tunable]:
    """See `trainers.tunable.Tunes.tunable`.

    Args:
        static: the trainer's own hyperparameters; bounds are widened to hold their values.
        ranged: names that have ranges already.
        rounds: that a trial trains, if that is known: with few, small steps do not get anywhere.
    """
    taken = {ALIASES.get(name, name) for name in ranged}
    own = {ALIASES.get(name, name): name for name in static}
    known = LINEAR if static.get("booster") == "gblinear" else TREES
    found = {}
    for name, bounds in known.items():
        value = static.get(own.get(name, ""))
        if name in taken or (name == "max_depth" and value == 0):  # 0 is no limit, and not the least of depths.
            continue
        if name == "eta" and rounds is not None:
            bounds = replace(bounds, least=max(_SLOWEST, min(0.1, 1 / rounds)))
        found[own.get(name, name)] = _holding(bounds, value)
    return found


def _holding(bounds: Tunable, value: Any) -> Tunable:
    """Bounds that hold a value, too, if their scale has it."""
    number = float(value) if value is not None else bounds.least
    if number <= 0 and bounds.scale == "Logarithmic":
        return bounds
    return replace(bounds, least=min(bounds.least, number), most=max(bounds.most, number))
