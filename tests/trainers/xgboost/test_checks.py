"""Hyperparameters that are refused before anything starts, and those that are taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from trainers import XGBoostTrainer
from trainers.errors import ConfigurationError
from trainers.xgboost.checks import check_parameters
from trainers.xgboost.parameters import KNOWN


@pytest.mark.parametrize(
    ("hyperparameters", "message"),
    [
        ({"etaa": 0.1}, "hyperparameter 'etaa' is none of XGBoost's, which would ignore it; did you mean 'eta'[?]"),
        ({"max_dept": 3}, "did you mean 'max_depth'"),
        ({"numround": 3}, "did you mean 'num_round'"),
        ({"num_round": 10**400}, "'num_round' is a whole number of 1,329 bits; give a whole number from 1"),
        ({"num_round": 2**31}, "'num_round' is 2147483648; give at most 2147483647"),
        (
            {"max_depth": [10**5000]},
            "'max_depth' is a list with a whole number of more than 4,300 digits; give a whole",
        ),
        ({"tree_method": 10**5000}, "'tree_method' is a whole number of 16,610 bits; give one of auto"),
        ({"eval_metric": [10**5000]}, "'eval_metric' is a list with a whole number of more than 4,300 digits; give"),
        ({"maximize": 10**5000}, "'maximize' is a whole number of 16,610 bits; give True or False"),
        ({"max_depth": 10**5000}, "'max_depth' is a whole number of 16,610 bits; give a whole number, 0 or more"),
        ({"foo": 1}, "hyperparameter 'foo' is none of XGBoost's, which would ignore it; leave it out"),
        ({5: 1}, "hyperparameters have the name 5; give a string"),
        ({"predictor": "cpu_predictor"}, "'predictor' is no longer one of XGBoost's; give 'device' instead"),
        (
            {"eta": 0.1, "learning_rate": 0.2},
            "'eta' and 'learning_rate' are two names of one.*leave 'learning_rate' out",
        ),
        ({"eta": -0.1}, "hyperparameter 'eta' is -0.1; give a number, 0 or more"),
        ({"learning_rate": -1}, "hyperparameter 'learning_rate' is -1; give a number, 0 or more"),
        ({"eta": math.nan}, "hyperparameter 'eta' is nan; give a number"),
        ({"eta": math.inf}, "hyperparameter 'eta' is inf; give a number.*that 32 bits hold"),
        ({"eta": True}, "hyperparameter 'eta' is True; give a number"),
        ({"eta": "fast"}, "hyperparameter 'eta' is 'fast'; give a number"),
        ({"gamma": 1e300}, "hyperparameter 'gamma' is 1e[+]300; give a number, 0 or more, that 32 bits hold"),
        ({"max_depth": 10**10}, "give a whole number, 0 or more, that 32 bits hold"),
        ({"max_depth": -1}, "hyperparameter 'max_depth' is -1; give a whole number, 0 or more"),
        ({"max_depth": 3.0}, "hyperparameter 'max_depth' is 3.0; give a whole number, 0 or more, without a decimal"),
        ({"max_depth": "3.0"}, "hyperparameter 'max_depth' is '3.0'; give a whole number"),
        ({"subsample": 0}, "hyperparameter 'subsample' is 0; give a number above 0, up to 1"),
        ({"subsample": 1.1}, "hyperparameter 'subsample' is 1.1; give a number above 0, up to 1"),
        ({"colsample_bytree": 0.0}, "hyperparameter 'colsample_bytree' is 0.0; give a number above 0, up to 1"),
        (
            {"tree_method": "hits"},
            "'tree_method' is 'hits'; give one of auto, exact, approx, hist; did you mean 'hist'",
        ),
        ({"booster": None, "grow_policy": 5}, "'grow_policy' is 5; give one of depthwise, lossguide"),
        ({"objective": "binary:logistc"}, "'objective' is 'binary:logistc'.*did you mean 'binary:logistic'"),
        ({"objective": print}, "'objective' is <built-in function print>; give one of"),
        ({"eval_metric": "aucc"}, "'eval_metric' is 'aucc'; give metrics among .*did you mean 'auc'"),
        ({"eval_metric": ["auc", 5]}, "give metrics among"),
        ({"eval_metric": []}, "'eval_metric' is .*; give a metric's name, such as 'auc', or a list"),
        ({"eval_metric": "ams"}, "'eval_metric' is 'ams'; give its number too, as in 'ams@0.15'"),
        ({"base_score": print}, "give text, a number, true or false, or a list"),
        ({"interaction_constraints": print}, "give lists of columns, by name or all by place"),
        ({"interaction_constraints": [0, 1]}, "give lists of columns"),
        ({"interaction_constraints": [["age", 1]]}, "give lists of columns"),
        (
            {"monotone_constraints": (1, 0, 2)},
            r"is \(1, 0, 2\); give 1, 0 or -1 for each column",
        ),
        ({"monotone_constraints": [1.0]}, "give 1, 0 or -1 for each column"),
        ({"monotone_constraints": {"age": "up"}}, "or by name, {'age': 1}"),
        ({"booster": np.array(["gbtree", "dart"])}, "'booster' is array.*; give its tolist"),
        ({"base_score": math.nan}, "'base_score' is nan; give"),
        (
            {"objective": "multi:softmax"},
            "'num_class' is None with objective 'multi:softmax'; give the number of classes",
        ),
        (
            {"objective": "multi:softprob", "num_class": 1},
            "'num_class' is 1 with .*; give the number of classes, 2 or more",
        ),
        (
            {"objective": "binary:logistic", "num_class": 2},
            "'num_class' is 2 with objective 'binary:logistic'; leave it",
        ),
        ({"eval_metric": ["rmse", "auc@3"]}, "XGBoost would not read what is behind 'auc': leave it out"),
        ({"eval_metric": "mae-"}, "XGBoost would not read what is behind 'mae': leave it out"),
        ({"eval_metric": "ndcg@0.25"}, "how many of a query's first rows count, 1 or more, as in 'ndcg@5'"),
        ({"eval_metric": "map@0-"}, "how many of a query's first rows count"),
        ({"eval_metric": "error@2-"}, "give a number behind the @, as in 'error@0.3'"),
        ({"eval_metric": "ams@"}, "give a number behind the @, as in 'ams@0.3'"),
        (
            {"objective": "reg:quantileerror"},
            "'quantile_alpha' is None with objective 'reg:quantileerror'; give a quantile",
        ),
    ],
)
def test_what_is_refused_and_what_to_give_instead(hyperparameters: dict[Any, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        XGBoostTrainer(hyperparameters=hyperparameters)


@pytest.mark.parametrize(
    "hyperparameters",
    [
        {"eta": "0.1", "max_depth": "3", "eval_metric": ("auc", "error@0.7")},
        {"max_depth": None, "eta": np.float32(0.25), "max_leaves": np.int64(7), "subsample": 1},
        {"monotone_constraints": (1, 0, -1), "interaction_constraints": [[0, 1], [2]], "base_score": [0.5]},
        {"objective": "multi:softprob", "num_class": 3, "eval_metric": "mlogloss"},
        {"num_round": 7, "n_estimators": 9, "device": "cpu", "verbosity": 0, "seed": 3, "nthread": 2},
    ],
)
def test_what_is_taken(hyperparameters: dict[str, Any]) -> None:
    check_parameters(hyperparameters)


def test_a_name_that_only_the_installed_xgboost_knows_is_taken() -> None:
    """`boost_from_average` stands in none of the tables, nor will what a later release adds."""
    assert "boost_from_average" not in KNOWN
    check_parameters({"boost_from_average": 1})
