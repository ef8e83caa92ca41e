"""Trials as a record holds them, and what describes them."""

from __future__ import annotations

from typing import Any

from hpo.ranges import CategoricalParameter, ContinuousParameter
from hpo.record.store import TrialRow

SPEC = {
    "strategy": "Hyperband",
    "strategy_request": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 30}},
    "objective_type": "Maximize",
    "objective_metric_name": "validation:auc",
    "objective_value": "last",
    "max_jobs": 30,
    "max_parallel_jobs": 4,
    "max_runtime_in_seconds": None,
    "parameter_ranges": {
        "ContinuousParameterRanges": [{"Name": "eta", "MinValue": "0", "MaxValue": "1", "ScalingType": "Auto"}],
        "CategoricalParameterRanges": [{"Name": "booster", "Values": ["gbtree", "dart"]}],
        "IntegerParameterRanges": [],
    },
    "hyperparameter_ranges": {
        "eta": ContinuousParameter(0, 1).to_json(),
        "booster": CategoricalParameter(["gbtree", "dart"]).to_json(),
    },
    "early_stopping_type": "Off",
    "random_seed": 1729,
    "estimator": {"trainer": "XGBoostTrainer", "scaling": {}, "hyperparameters": {"eval_metric": "auc"}},
}


def trial(number: int, **changes: Any) -> TrialRow:
    """A trial that ran to its end, unless told otherwise."""
    return TrialRow(
        **{
            "job": "bank",
            "trial_id": f"bank-{number:03d}",
            "number": number,
            "status": "Completed",
            "hyperparameters": {"eta": 0.1 * (number + 1), "booster": "dart"},
            "resource": 30,
            "objective": 0.7,
            "best_objective": 0.7,
            "best_resource": 30,
            "started_at": 1010.0,
            "ended_at": 1020.0,
        }
        | changes
    )


TRIALS = [
    trial(0, objective=0.70, best_objective=0.78),
    trial(1, status="Stopped", objective=0.75, best_objective=0.76),
    trial(2, status="Failed", objective=0.90, best_objective=0.95, failure_reason="max_depth must be positive"),
    trial(3, status="Stopped", objective=None, best_objective=0.60),
    trial(4, status="Running", objective=0.72, best_objective=0.72, ended_at=None),
    trial(5, status="Paused", objective=0.71, best_objective=0.71, ended_at=None),
    trial(6, status="Pending", objective=None, best_objective=None, started_at=None, ended_at=None),
    trial(7, status="Failed", objective=None, best_objective=None, failure_reason="lost its workers"),
    trial(8, status="Diverged", objective=None, best_objective=None, failure_reason="the loss is nan"),
]
