"""The tables of XGBoost's parameters: the installed XGBoost agrees with them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.support.refusals import refuses, refuses_each
from trainers import Channel
from trainers.errors import ConfigurationError, DataError
from trainers.xgboost.checks import check_parameters
from trainers.xgboost.labels import label_rules
from trainers.xgboost.parameters import (
    ALIASES,
    CHOICES,
    KNOWN,
    METRICS,
    NUMBERS,
    OBJECTIVES,
    OTHERS,
    REPLACED,
    metric_names,
)

Case = tuple[Callable[[], object], tuple[object, ...]]
"""What is refused, and the names in its error."""

FEATURES = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
LABELS = np.arange(40) % 2


def trained(**parameters: Any) -> tuple[xgboost.Booster, str]:
    """A booster after a round, and what XGBoost warned of."""
    bounds = {"label_lower_bound": LABELS + 1, "label_upper_bound": LABELS + 1}
    matrix = xgboost.DMatrix(FEATURES, label=LABELS, **bounds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        booster = xgboost.Booster({"validate_parameters": True, "verbosity": 1, "nthread": 1, **parameters}, [matrix])
        booster.update(matrix, 0)
        line = booster.eval_set([(matrix, "v")], 0)
    booster.set_attr(line=line)
    return booster, " ".join(str(warning.message) for warning in caught)


CONTEXTS: dict[str, dict[str, Any]] = {
    "rate_drop": {"booster": "dart"},
    "skip_drop": {"booster": "dart"},
    "one_drop": {"booster": "dart"},
    "sample_type": {"booster": "dart"},
    "normalize_type": {"booster": "dart"},
    "top_k": {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "thrifty"},
    "feature_selector": {"booster": "gblinear", "updater": "coord_descent"},
    "tweedie_variance_power": {"objective": "reg:tweedie"},
    "huber_slope": {"objective": "reg:pseudohubererror"},
    "quantile_alpha": {"objective": "reg:quantileerror"},
    "num_class": {"objective": "multi:softmax"},
    "ndcg_exp_gain": {"objective": "rank:ndcg"},
} | {name: {"objective": "rank:ndcg"} for name in KNOWN if name.startswith("lambdarank_")}


def without_ranking(context: dict[str, Any]) -> dict[str, Any]:
    """The same but for an objective that XGBoost takes and we refuse."""
    return {} if str(context.get("objective")).startswith("rank:") else context


@pytest.mark.parametrize("name", sorted({*NUMBERS, *ALIASES} - {"aft_loss_distribution_scale"}))
def test_xgboost_knows_every_number_and_refuses_what_is_out_of_bounds(name: str) -> None:
    own = ALIASES.get(name, name)
    allowed, context = NUMBERS[own], CONTEXTS.get(own, {})
    inside = (
        2 if allowed.least in (-math.inf, 2) or own == "num_class" else 1.5 if own == "tweedie_variance_power" else 1
    )
    _, warned = trained(**context, **{name: inside})
    assert "are not used" not in warned
    for value in (allowed.least - 1, allowed.most + 1):
        if math.isfinite(value):
            with pytest.raises(xgboost.core.XGBoostError):
                trained(**context, **{name: int(value)})
            limit = allowed.least if value < allowed.least else allowed.most
            with refuses(ConfigurationError, field=name, value=int(value), remedy=f"{limit:g}"):
                check_parameters({**without_ranking(context), name: int(value)})
    check_parameters({**without_ranking(context), name: inside})


@pytest.mark.parametrize("name", OTHERS)
def test_xgboost_knows_every_other(name: str) -> None:
    values = {"eval_metric": "rmse", "device": "cpu", "updater": "grow_quantile_histmaker", "quantile_alpha": 0.5}
    values |= {"interaction_constraints": "[[0, 1]]", "monotone_constraints": "(1, 0, 0)", "base_score": 0.5}
    _, warned = trained(**CONTEXTS.get(name, {}), **{name: values.get(name, 1)})
    assert "are not used" not in warned


@pytest.mark.parametrize("name", sorted(set(CHOICES) - {"aft_loss_distribution", "process_type", "objective"}))
def test_xgboost_takes_every_choice_and_no_other(name: str) -> None:
    context = CONTEXTS.get(name, {})
    for value in CHOICES[name]:
        trained(**{**context, name: value})
    with pytest.raises(xgboost.core.XGBoostError):
        trained(**{**context, name: "nonsense"})
    with refuses(ConfigurationError, field=name, value="nonsense", remedy=CHOICES[name]):
        check_parameters({**without_ranking(context), name: "nonsense"})


def test_the_objectives_are_xgboosts_own() -> None:
    with pytest.raises(xgboost.core.XGBoostError) as refused:
        trained(objective="nonsense")
    candidates = {line.split(": ", 1)[1] for line in str(refused.value).splitlines() if "candidate" in line}
    assert candidates == set(OBJECTIVES)


@pytest.mark.parametrize("metric", METRICS)
def test_the_metrics_are_xgboosts_own_and_named_as_it_reports_them(metric: str) -> None:
    given = {"ams": "ams@0.15", "tweedie-nloglik": "tweedie-nloglik@1.5"}.get(metric, metric)
    context: dict[str, Any] = (
        {"objective": "multi:softprob", "num_class": 2} if metric in ("merror", "mlogloss") else {}
    )
    if metric == "quantile":
        context = {"objective": "reg:quantileerror", "quantile_alpha": 0.5}
    booster, _ = trained(**context, eval_metric=given)
    assert f"v-{metric_names(given)[0]}:" in str(booster.attr("line"))


@pytest.mark.parametrize(
    "metric",
    [
        *("error@0.5", "error@0.50", "error@.3", "error@1e-3", "ndcg@2-", "map-", "pre@3", "ams@0.150"),
        *("tweedie-nloglik@1.50", "tweedie-nloglik@1"),
    ],
)
def test_a_metric_with_an_argument_is_named_as_xgboost_reports_it(metric: str) -> None:
    booster, _ = trained(eval_metric=metric)
    assert f"v-{metric_names(metric)[0]}:" in str(booster.attr("line"))
    check_parameters({"eval_metric": metric})


def test_xgboost_does_not_say_which_names_it_ignores_where_users_look() -> None:
    """Why a table is needed at all."""
    _, warned = trained(etaa=0.1)
    assert '"etaa" } are not used' in warned


def test_what_replaces_an_old_name_is_known() -> None:
    assert set(REPLACED.values()) <= KNOWN
    assert not set(REPLACED) & KNOWN


def test_labels_that_an_objective_cannot_use() -> None:
    def looked_at(metric: str | None, labels: list[float], **hyperparameters: Any) -> Callable[[], object]:
        channel = Channel.of((np.zeros((len(labels), 1)), labels))
        return channel.expecting(label_rules(hyperparameters, metric, train=metric is None)).look

    def of_objective(objective: str, labels: list[float], *names: object, **more: Any) -> Case:
        return looked_at(None, labels, objective=objective, **more), (objective, *names)

    def of_metric(metric: str, labels: list[float], *names: object, **more: Any) -> Case:
        return looked_at(metric, labels, **more), ("objective_metric_name", metric, *names)

    refuses_each(
        [
            of_objective("binary:logistic", [0, 1, 2], 2, 0, 1),
            of_objective("binary:logitraw", [-1, 1], -1, 0, 1),
            of_objective("binary:logistic", [1, 1], 1, "classes"),
            of_objective("reg:gamma", [0, 1], 0),
            of_objective("reg:tweedie", [-1, 1], -1, 0),
            of_objective("reg:squaredlogerror", [-1, 1], -1),
            of_objective("multi:softmax", [0, 2], 2, 0, 1, "num_class", num_class=2),
            of_objective("multi:softmax", [0, 0.5], 0.5, num_class=2),
            of_metric("validation:auc", [0, 0], 0, "classes"),
            of_metric("validation:aucpr", [1, 1], 1, "classes"),
            of_metric("validation:auc", [0, 3], 3, 0, 1),
            of_metric("validation:auc", [0, 1], 2, 3, "classes", objective="multi:softprob", num_class=3),
        ],
        DataError,
    )


@pytest.mark.parametrize(
    ("hyperparameters", "metric", "labels"),
    [
        ({}, None, [-5, 7.5]),
        ({"objective": "binary:logistic"}, None, [0.2, 0.7]),
        ({"objective": "binary:logistic"}, "validation:logloss", [1, 1]),
        ({"objective": "multi:softprob", "num_class": 3}, "validation:auc", [0, 1, 2]),
    ],
)
def test_labels_that_it_can(hyperparameters: dict[str, Any], metric: str | None, labels: list[float]) -> None:
    for rule in label_rules(hyperparameters, metric, train=metric is None):
        rule.check(np.array(labels, np.float32), complete=True)


def test_one_class_is_what_makes_xgboosts_auc_nan() -> None:
    """Why such a validation set is refused."""
    matrix, one = (xgboost.DMatrix(FEATURES, label=labels) for labels in (LABELS, np.ones(40)))
    booster = xgboost.Booster({"eval_metric": "auc", "objective": "binary:logistic", "verbosity": 0}, [matrix, one])
    booster.update(matrix, 0)
    assert booster.eval_set([(one, "v")], 0).endswith("v-auc:nan")


def test_two_names_of_the_number_of_rounds_with_two_values_are_refused() -> None:
    with refuses(ConfigurationError, field=("'num_round'", "'n_estimators'"), value=3, remedy=(5, "one")):
        check_parameters({"num_round": 3, "n_estimators": 5})
    check_parameters({"num_round": 3, "n_estimators": 3, "num_boost_round": None})
