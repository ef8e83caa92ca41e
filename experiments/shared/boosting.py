"""XGBoost as the blog trains and tunes it on the direct-marketing data: see `experiments.shared.problems`."""

from __future__ import annotations

from typing import Any

from hpo import ContinuousParameter, IntegerParameter
from hpo.ranges import ParameterRange

STATIC: dict[str, Any] = {
    "objective": "binary:logistic",
    "eval_metric": "auc",
    "eta": 0.3,
    "colsample_bylevel": 0.5,
    "colsample_bytree": 0.8,
}
"""XGBoost's static hyperparameters."""

RANGES: dict[str, ParameterRange] = {
    "num_round": IntegerParameter(100, 200),
    "eta": ContinuousParameter(0, 1),
    "min_child_weight": ContinuousParameter(1, 10),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(1, 10),
    "colsample_bylevel": ContinuousParameter(0, 1),
    "colsample_bytree": ContinuousParameter(0, 1),
}
