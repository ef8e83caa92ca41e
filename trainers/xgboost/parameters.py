"""XGBoost's own parameters: names and types of values.

Source: "XGBoost Parameters" of release 3.2 (https://xgboost.readthedocs.io/en/release_3.2.0/parameter.html), and what
XGBoost 3.2 itself refuses; a test holds the tables to the installed one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

ROUNDS = ("num_round", "num_boost_round", "n_estimators")
"""Names under which users give the number of rounds; XGBoost itself is not told, the assignment says when to stop."""

PATIENCE, MAXIMIZE = "early_stopping_rounds", "maximize"
"""Arguments of `xgboost.train` among the hyperparameters: rounds without a better one, and which end is better."""

FIXED = ("base_score", "booster", "multi_strategy", "num_class", "objective")
"""What a model's trees were made for: with other values XGBoost refuses them, drops them or reads them as another's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """The numbers that a parameter takes; `open` leaves `least` itself out."""

    least: float = -math.inf
    most: float = math.inf
    open: bool = False
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        inside = self.least < value if self.open else self.least <= value
        return inside and value <= self.most

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if math.isinf(self.least):
            return kind
        if math.isinf(self.most):
            return f"{kind}, {self.least:g} or more"
        return (
            f"{kind} above {self.least:g}, up to {self.most:g}"
            if self.open
            else f"{kind} from {self.least:g} to {self.most:g}"
        )


_ANY = Number()
_FROM_0 = Number(least=0)
_SHARE = Number(least=0, most=1)
# XGBoost lets 0 pass, which trains on no row, or as if it were the least share that keeps a column.
_SOME = Number(least=0, most=1, open=True)
_COUNT = Number(least=0, whole=True)
_FROM_1 = Number(least=1, whole=True)

NUMBERS: dict[str, Number] = {
    "nthread": Number(whole=True),
    "seed": Number(whole=True),
    "verbosity": Number(least=0, most=3, whole=True),
    # trees
    "eta": _FROM_0,
    "gamma": _FROM_0,
    "max_depth": _COUNT,
    "min_child_weight": _FROM_0,
    "max_delta_step": _FROM_0,
    "subsample": _SOME,
    "colsample_bytree": _SOME,
    "colsample_bylevel": _SOME,
    "colsample_bynode": _SOME,
    "lambda": _FROM_0,
    "alpha": _FROM_0,
    "scale_pos_weight": _FROM_0,
    "max_leaves": _COUNT,
    "max_bin": Number(least=2, whole=True),
    "num_parallel_tree": _FROM_1,
    "max_cached_hist_node": _FROM_1,
    "max_cat_to_onehot": _FROM_1,
    "max_cat_threshold": _FROM_1,
    "sparse_threshold": _SHARE,
    # dart
    "rate_drop": _SHARE,
    "skip_drop": _SHARE,
    # linear
    "top_k": _COUNT,
    # objectives
    "num_class": _COUNT,
    "tweedie_variance_power": Number(least=1, most=2),
    "huber_slope": _ANY,
    "aft_loss_distribution_scale": _ANY,
    "lambdarank_num_pair_per_sample": _FROM_1,
    "lambdarank_bias_norm": _FROM_0,
}

OBJECTIVES = (
    "binary:hinge",
    "binary:logistic",
    "binary:logitraw",
    "count:poisson",
    "multi:softmax",
    "multi:softprob",
    "rank:map",
    "rank:ndcg",
    "rank:pairwise",
    "reg:absoluteerror",
    "reg:gamma",
    "reg:linear",
    "reg:logistic",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:tweedie",
    "survival:aft",
    "survival:cox",
)

CHOICES: dict[str, tuple[str, ...]] = {
    "booster": ("gbtree", "gblinear", "dart"),
    "tree_method": ("auto", "exact", "approx", "hist"),
    "grow_policy": ("depthwise", "lossguide"),
    "sampling_method": ("uniform", "gradient_based"),
    "process_type": ("default", "update"),
    "multi_strategy": ("one_output_per_tree", "multi_output_tree"),
    "sample_type": ("uniform", "weighted"),
    "normalize_type": ("tree", "forest"),
    "feature_selector": ("cyclic", "shuffle", "random", "greedy", "thrifty"),
    "objective": OBJECTIVES,
    "aft_loss_distribution": ("normal", "logistic", "extreme"),
    "lambdarank_pair_method": ("mean", "topk"),
}

METRICS = (
    "aft-nloglik",
    "ams",
    "auc",
    "aucpr",
    "cox-nloglik",
    "error",
    "gamma-deviance",
    "gamma-nloglik",
    "interval-regression-accuracy",
    "logloss",
    "mae",
    "map",
    "mape",
    "merror",
    "mlogloss",
    "mphe",
    "ndcg",
    "poisson-nloglik",
    "pre",
    "quantile",
    "rmse",
    "rmsle",
    "tweedie-nloglik",
)

WITH_NUMBER = ("ams", "error", "tweedie-nloglik")
"""Metrics that take a number behind an @."""

OF_TOP = ("map", "ndcg", "pre")
"""Metrics that take how many of a query's first rows count, and a hyphen: a query without relevant rows counts 0."""

_MAXIMIZED = ("auc", "aucpr", "map", "ndcg", "pre", "ams", "interval-regression-accuracy")
"""Metrics of which the greater is better: those of XGBoost's early stopping, and two that it forgets."""

OTHERS = (
    "base_score",
    "debug_synchronize",
    "device",
    "disable_default_eval_metric",
    "eval_metric",
    "fail_on_invalid_gpu_id",
    "interaction_constraints",
    "lambdarank_normalization",
    "lambdarank_score_normalization",
    "lambdarank_unbiased",
    "monotone_constraints",
    "ndcg_exp_gain",
    "one_drop",
    "quantile_alpha",
    "refresh_leaf",
    "seed_per_iteration",
    "updater",
    "validate_parameters",
)

ALIASES = {
    "learning_rate": "eta",
    "min_split_loss": "gamma",
    "n_jobs": "nthread",
    "random_state": "seed",
    "reg_alpha": "alpha",
    "reg_lambda": "lambda",
}

REPLACED = {"gpu_id": "device", "predictor": "device", "silent": "verbosity", "sketch_eps": "max_bin"}
"""What earlier releases knew, and what does it now."""

KNOWN = frozenset({*NUMBERS, *CHOICES, *OTHERS, *ALIASES})


def metric_names(eval_metric: Any) -> list[str]:
    """The metrics of an `eval_metric`, as XGBoost's reports name them: "error@0.50" is reported as "error"."""
    names = [eval_metric] if isinstance(eval_metric, str) else list(eval_metric)
    return [_reported(name) for name in names]


def _reported(metric: str) -> str:
    base, at, argument = metric.partition("@")
    if base not in WITH_NUMBER or not at:
        return metric
    try:
        number = float(argument)
    except ValueError:
        return metric
    return base if (base, number) == ("error", 0.5) else f"{base}@{number:g}"


def maximized(metric: str) -> bool:
    """Whether the greater is better of a metric of XGBoost's."""
    return _without_number(metric) in _MAXIMIZED


def well_known(metric: str) -> bool:
    """Whether it is a metric of XGBoost's own, with or without a number behind an @."""
    return _without_number(metric) in METRICS


def _without_number(metric: str) -> str:
    """Return the name of `ndcg@5-`, say, without its number and sign: `ndcg`."""
    return metric.partition("@")[0].removesuffix("-")
