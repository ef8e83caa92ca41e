"""Settings that change nothing are warned of before the job starts: lengths, and a Hyperband that stops nothing."""

from __future__ import annotations

from typing import Any

import pytest

from hpo import CategoricalParameter, HyperbandStrategyConfig, IntegerParameter, StrategyConfig
from hpo.jobs.build import warnings
from hpo.jobs.checks import direction_warnings, inert_lengths, longest
from tests.support.bad_input import make
from tests.support.refusals import mentions
from trainers import XGBoostTrainer
from trainers.length import Length

ROUNDS = Length(names=XGBoostTrainer.resource_names)


@pytest.mark.parametrize(
    ("ranges", "static", "strategy", "warned"),
    [
        (
            ["num_round"],
            {},
            "Hyperband",
            [("num_round", "Hyperband", 9)],
        ),
        (["n_estimators"], {}, "Hyperband", [("n_estimators", "Hyperband")]),
        (["num_round"], {"n_estimators": 5}, "Random", []),
        (
            ["n_estimators"],
            {"num_round": 5},
            "Random",
            [("n_estimators", "static", "num_round", 5)],
        ),
        (["n_estimators"], {"num_round": None}, "Random", []),
        (
            ["num_round", "n_estimators"],
            {},
            "Random",
            [("n_estimators", "num_round")],
        ),
        (["eta"], {"num_round": 5}, "Random", []),
    ],
)
def test_a_tuned_length_without_effect_is_warned_of(
    ranges: list[str], static: dict[str, Any], strategy: str, warned: list[tuple[object, ...]]
) -> None:
    tuned = dict.fromkeys(ranges, IntegerParameter(1, 7))
    told = inert_lengths(ROUNDS, tuned, static, strategy.removeprefix("Random"), 9)
    assert len(told) == len(warned)
    for text, names in zip(told, warned, strict=True):
        mentions(text, *names)


@pytest.mark.parametrize(
    ("ranges", "static", "units"),
    [
        ({"num_round": IntegerParameter(1, 7)}, {"num_round": 50}, 7),
        ({"n_estimators": IntegerParameter(1, 7)}, {"num_round": 5}, 5),
        ({"n_estimators": IntegerParameter(1, 7)}, {}, 7),
        ({"num_round": CategoricalParameter([5, 500])}, {}, 500),
        ({}, {"num_boost_round": 4}, 4),
        ({}, {}, None),
    ],
)
def test_how_long_the_longest_trial_is(ranges: dict[str, Any], static: dict[str, Any], units: int | None) -> None:
    assert longest((ROUNDS,), ranges, static) == units


@pytest.mark.parametrize(
    ("max_resource", "min_resource", "factor", "max_jobs", "strategy", "warned"),
    [
        (9, 1, 3, 9, "Hyperband", ()),
        (9, 3, 3, 2, "Hyperband", ()),
        (9, 4, 3, 9, "Hyperband", ("max_resource", 12, "reduction_factor", 3, "min_resource", 4)),
        (3, 1, 4, 2, "Hyperband", ("max_resource", 4, "reduction_factor", "min_resource", 1)),
        (2, None, None, 9, "Hyperband", ("max_resource", 3, "reduction_factor", "min_resource", 1)),
        (9, 4, 3, 1, "Hyperband", ()),  # Of one trial nobody expects that it is stopped.
        (9, None, None, 9, "Random", ()),
    ],
)
def test_hyperband_that_stops_nothing_is_warned_of(
    max_resource: int,
    min_resource: int | None,
    factor: int | None,
    max_jobs: int,
    strategy: str,
    warned: tuple[object, ...],
) -> None:
    config = None
    if min_resource is not None and factor is not None:
        hyperband = HyperbandStrategyConfig(max_resource, min_resource, reduction_factor=factor)
        config = StrategyConfig(hyperband)
    tuner = make(static={"num_round": max_resource}, strategy=strategy, strategy_config=config, max_jobs=max_jobs)
    told = "".join(warnings(tuner.settings))
    assert bool(told) == bool(warned)
    mentions(told, *warned)


@pytest.mark.parametrize(
    ("metric", "objective_type", "right"),
    [
        ("logloss", "Maximize", "Minimize"),
        ("error@0.7", "Maximize", "Minimize"),
        ("auc", "Minimize", "Maximize"),
        ("ndcg@5-", "Minimize", "Maximize"),
        ("logloss", "Minimize", None),
        ("auc", "Maximize", None),
        ("profit", "Maximize", None),
    ],
)
def test_a_job_that_looks_for_the_worst_trial_is_warned_of(metric: str, objective_type: str, right: str | None) -> None:
    name = f"validation:{metric}"
    smaller = XGBoostTrainer(hyperparameters={"objective": "binary:logistic"}).smaller_is_better(name)
    told = direction_warnings(name, objective_type, smaller=smaller)
    assert len(told) == (right is not None)
    for text in told:
        mentions(text, name, repr(objective_type), repr(right))


@pytest.mark.parametrize(
    ("name", "objective_type", "right"),
    [
        ("validation:loss", "Maximize", "Minimize"),
        ("val/squared_error", "Maximize", "Minimize"),
        ("val_RMSE", "Maximize", "Minimize"),
        ("validation:accuracy", "Minimize", "Maximize"),
        ("validation:top_f1", "Minimize", "Maximize"),
        ("validation:loss", "Minimize", None),
        ("validation:accuracy", "Maximize", None),
        ("validation:profit", "Maximize", None),
        ("loss:profit", "Maximize", None),
        ("validation:neg_log_loss", "Maximize", None),
        ("validation:accuracy_loss", "Minimize", None),
        ("validation:terror", "Maximize", None),
        ("", "Maximize", None),
    ],
)
def test_where_the_trainer_does_not_know_the_name_is_guessed_from(
    name: str, objective_type: str, right: str | None
) -> None:
    told = direction_warnings(name, objective_type, smaller=None)
    assert len(told) == (right is not None)
    for text in told:
        mentions(text, name, repr(objective_type), repr(right), "looks like", "if it is one")


def test_the_warning_of_the_worst_trial_comes_first() -> None:
    tuner = make(static={"eval_metric": "logloss"}, objective_metric_name="validation:logloss")
    mentions(warnings(tuner.settings)[0], "validation:logloss", "'Minimize'")
