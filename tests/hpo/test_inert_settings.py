"""Settings that change nothing are warned of before the job starts: lengths, and a Hyperband that stops nothing."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from hpo import CategoricalParameter, HyperbandStrategyConfig, IntegerParameter, StrategyConfig
from hpo.jobs.build import warnings
from hpo.jobs.checks import inert_lengths, longest
from tests.support.bad_input import RANGES, make, rows
from tests.support.refusals import mentions, missing_names
from trainers import XGBoostTrainer


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
    told = inert_lengths(XGBoostTrainer.resource_names, tuned, static, strategy.removeprefix("Random"), 9)
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
    assert longest((XGBoostTrainer.resource_names,), ranges, static) == units


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


def warns(printed: str, *names: object) -> bool:
    """Whether a line is a warning with these names."""
    return any(not missing_names(line, "warning", *names) for line in printed.splitlines())


def test_the_warning_is_printed_before_the_job_starts() -> None:
    printed = io.StringIO()
    ranges = {**RANGES, "n_estimators": IntegerParameter(2, 50)}
    tuner = make(0, ranges=ranges, strategy="Random", strategy_config=None, console=Console(file=printed, width=120))
    assert tuner.plan().max_resource == 20
    tuner.fit({"train": rows(), "validation-2": rows(), "validation": rows()})
    assert warns(printed.getvalue(), "n_estimators", "num_round", 20)
    assert set(tuner.analytics().dataframe()["Resource"]) == {20}
    assert "validation-2:auc" in tuner.analytics().curve(tuner.best_training_job()).columns


def test_the_warning_that_nothing_is_stopped_is_printed_too() -> None:
    printed = io.StringIO()
    config = StrategyConfig(HyperbandStrategyConfig(5, 2))
    tuner = make(0, max_jobs=2, strategy_config=config, console=Console(file=printed, width=120))
    tuner.fit({"train": rows(), "validation": rows()})
    assert warns(printed.getvalue(), "Hyperband", 5, "max_resource")
