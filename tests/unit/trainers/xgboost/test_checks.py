"""Hyperparameters that are refused before anything starts, and those that are taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.support.refusals import refuses_each
from trainers import XGBoostTrainer
from trainers.errors import ConfigurationError
from trainers.xgboost.checks import check_parameters
from trainers.xgboost.parameters import KNOWN


def test_what_is_refused_and_what_to_give_instead() -> None:
    monotone, interaction, groups = "monotone_constraints", "interaction_constraints", "[[0, 1], [2]]"
    cases: list[tuple[dict[Any, Any], tuple[object, ...]]] = [
        ({"etaa": 0.1}, ("etaa", "XGBoost", "eta")),
        ({"max_dept": 3}, ("max_dept", "max_depth")),
        ({"numround": 3}, ("numround", "num_round")),
        ({"num_round": 10**400}, ("num_round", "1,329", 1)),
        ({"num_round": 2**31}, ("num_round", 2**31, 2**31 - 1)),
        ({"max_depth": [10**5000]}, ("max_depth", "16,610", "14,000")),
        ({"max_depth": 10**4000}, ("max_depth", "13,288", 0)),
        ({"tree_method": 10**4000}, ("tree_method", "13,288", "auto", "hist")),
        ({"foo": 1}, ("foo", "XGBoost")),
        ({5: 1}, ("hyperparameters", 5, "strings")),
        ({"predictor": "cpu_predictor"}, ("predictor", "device")),
        ({"eta": 0.1, "learning_rate": 0.2}, ("eta", "learning_rate")),
        ({"eta": -0.1}, ("eta", -0.1, 0)),
        ({"learning_rate": -1}, ("learning_rate", -1, 0)),
        ({"eta": math.nan}, ("eta", math.nan, 0)),
        ({"eta": math.inf}, ("eta", math.inf, 0, 32)),
        ({"eta": True}, ("eta", True, 0)),
        ({"eta": "fast"}, ("eta", "fast", 0)),
        ({"gamma": 1e300}, ("gamma", 1e300, 0, 32)),
        ({"max_depth": 10**10}, ("max_depth", 10**10, 0, 32)),
        ({"max_depth": -1}, ("max_depth", -1, 0)),
        ({"max_depth": 3.0}, ("max_depth", 3.0, 0, "decimal")),
        ({"max_depth": "3.0"}, ("max_depth", "'3.0'", 0)),
        ({"subsample": 0}, ("subsample", 0, 1)),
        ({"subsample": 1.1}, ("subsample", 1.1, 0, 1)),
        ({"colsample_bytree": 0.0}, ("colsample_bytree", 0.0, 0, 1)),
        ({"tree_method": "hits"}, ("tree_method", "hits", "auto", "exact", "approx", "hist")),
        ({"booster": None, "grow_policy": 5}, ("grow_policy", 5, "depthwise", "lossguide")),
        ({"objective": "binary:logistc"}, ("objective", "binary:logistc", "binary:logistic")),
        ({"objective": print}, ("objective", print, "string")),
        ({"eval_metric": "aucc"}, ("eval_metric", "aucc", "auc")),
        ({"eval_metric": ["auc", 5]}, ("eval_metric", ["auc", 5], "rmse")),
        ({"eval_metric": []}, ("eval_metric", [], "auc", "list")),
        ({"eval_metric": "ams"}, ("eval_metric", "'ams'", "ams@0.15")),
        ({"base_score": print}, ("base_score", print, "string", "number", "list")),
        ({interaction: print}, (interaction, print, "list")),
        ({interaction: [0, 1]}, (interaction, [0, 1], groups)),
        ({interaction: [["age", 1]]}, (interaction, [["age", 1]], groups)),
        ({monotone: (1, 0, 2)}, (monotone, [1, 0, 2], 1, 0, -1)),
        ({monotone: [1.0]}, (monotone, [1.0], 1, 0, -1)),
        ({monotone: {"age": "up"}}, (monotone, {"age": "up"}, {"age": 1})),
        ({"booster": np.array(["gbtree", "dart"])}, ("booster", "ndarray", "tolist()")),
        ({"base_score": math.nan}, ("base_score", math.nan, "number")),
        ({"objective": "multi:softmax"}, ("num_class", "multi:softmax", 2)),
        ({"objective": "multi:softprob", "num_class": 1}, ("num_class", 1, "multi:softprob", 2)),
        ({"objective": "binary:logistic", "num_class": 2}, ("num_class", 2, "binary:logistic", "multi:softprob")),
        ({"eval_metric": ["rmse", "auc@3"]}, ("eval_metric", ["rmse", "auc@3"], "'auc'")),
        ({"eval_metric": "mae-"}, ("eval_metric", "'mae-'", "'mae'")),
        ({"eval_metric": "ndcg@0.25"}, ("eval_metric", "ndcg@0.25", "ndcg@5")),
        ({"eval_metric": "map@0-"}, ("eval_metric", "map@0-", "map@5")),
        ({"eval_metric": "error@2-"}, ("eval_metric", "error@2-", "error@0.3")),
        ({"eval_metric": "ams@"}, ("eval_metric", "'ams@'", "ams@0.3")),
        ({"objective": "reg:quantileerror"}, ("quantile_alpha", "reg:quantileerror", 0, 1)),
    ]
    refuses_each(
        [(lambda told=told: XGBoostTrainer(hyperparameters=told), names) for told, names in cases], ConfigurationError
    )


@pytest.mark.parametrize(
    "hyperparameters",
    [
        {"eta": "0.1", "max_depth": "3", "eval_metric": ("auc", "error@0.7")},
        {"max_depth": None, "eta": 0.25, "max_leaves": 7, "subsample": 1},
        {"monotone_constraints": (1, 0, -1), "interaction_constraints": [[0, 1], [2]], "base_score": [0.5]},
        {"objective": "multi:softprob", "num_class": 3, "eval_metric": "mlogloss"},
        {"num_round": 7, "n_estimators": 7, "device": "cpu", "verbosity": 0, "seed": 3, "nthread": 2},
    ],
)
def test_what_is_taken(hyperparameters: dict[str, Any]) -> None:
    check_parameters(hyperparameters)


def test_a_name_that_only_the_installed_xgboost_knows_is_taken() -> None:
    """`boost_from_average` stands in none of the tables, nor will what a later release adds."""
    assert "boost_from_average" not in KNOWN
    check_parameters({"boost_from_average": 1})
