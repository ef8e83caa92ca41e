"""Methods, metrics and early termination of sweeps as a job's search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hpo.job_file.models import JobSpec
from tests.support.refusals import refuses_each
from trainers.errors import ConfigurationError

Job = Callable[..., JobSpec]

LR = {"min": 0.001, "max": 0.1}
ENDLESS = {"lr": LR}
"""Parameters that say nothing of a trial's length."""


@pytest.mark.parametrize(("method", "strategy"), [("random", "Random"), ("bayes", "Bayesian")])
def test_a_method_is_a_strategy(job: Job, method: str, strategy: str) -> None:
    tuning = job(method=method).tuning
    assert (tuning.strategy, tuning.max_jobs, tuning.hyperband) == (strategy, 12, None)
    assert (tuning.objective_metric_name, tuning.objective_type) == ("val/loss", "Minimize")


def test_a_grid_has_as_many_trials_as_combinations(job: Job) -> None:
    parameters = {"epochs": {"value": 9}, "a": {"values": [1, 2, 3]}, "b": {"min": 1, "max": 4}}
    tuning = job(method="grid", parameters=parameters, run_cap=12).tuning
    assert (tuning.strategy, tuning.max_jobs) == ("Grid", None)


def test_a_target_ends_the_job(job: Job) -> None:
    tuning = job(metric={"name": "acc", "goal": "maximize", "target": 0.9}).tuning
    assert tuning.objective_type == "Maximize"
    assert tuning.completion is not None
    assert tuning.completion.target_objective_metric_value == 0.9


@pytest.mark.parametrize(
    ("stopping", "changes", "expected"),
    [
        ({"max_iter": 27, "s": 2}, {}, (3, 27, 3)),
        ({"max_iter": 27, "s": 9}, {}, (1, 27, 3)),
        ({"max_iter": 32, "s": 3, "eta": 2}, {}, (4, 32, 2)),
        ({"max_iter": 30, "s": 2, "eta": 4}, {}, (1, 30, 4)),
        ({"max_iter": 27, "s": 2, "min_iter": 5}, {}, (3, 27, 3)),
        ({"max_iter": 27, "min_iter": 5}, {}, (5, 27, 3)),
        ({"max_iter": 27, "s": 2}, {"units": 81}, (3, 81, 3)),
        ({"min_iter": 3}, {}, (3, 9, 3)),
        ({"min_iter": 3, "eta": 2}, {"parameters": {**ENDLESS, "epochs": {"values": [10, 30]}}}, (3, 30, 2)),
        ({"min_iter": 3}, {"parameters": ENDLESS, "units": 50}, (3, 50, 3)),
    ],
)
@pytest.mark.parametrize(("method", "suggestions"), [("bayes", "model"), ("random", "random")])
def test_early_termination_is_hyperband(
    job: Job, stopping: dict[str, Any], changes: dict[str, Any], expected: Any, method: str, suggestions: str
) -> None:
    tuning = job(method=method, early_terminate={"type": "hyperband", **stopping}, **changes).tuning
    assert tuning.strategy == "Hyperband"
    assert tuning.hyperband is not None
    found = tuning.hyperband
    assert (found.min_resource, found.max_resource, found.reduction_factor) == expected
    assert found.suggestions == suggestions


@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("eta", [2, 3, 4])
@pytest.mark.parametrize("most", [16, 27, 100])
def test_the_first_rung_is_that_of_wandb(job: Job, most: int, eta: int, steps: int) -> None:
    """Its documentation: with s brackets and max_iter, max_iter / eta, max_iter / eta**2, ... as long as that is 1."""
    bands = [most / eta**place for place in range(1, steps + 1)]
    stopping = {"type": "hyperband", "max_iter": most, "s": steps, "eta": eta}
    found = job(early_terminate=stopping).tuning.hyperband
    assert found is not None
    assert found.min_resource == int(min(band for band in bands if band >= 1))


def test_a_length_that_nothing_says_is_given_by_hand(job: Job) -> None:
    spec = job(method="bayes", parameters=ENDLESS, units=40)
    assert (spec.tuning.strategy, spec.tuning.hyperband, spec.trainer.length) == ("Bayesian", None, 40)
    grid = job(method="grid", parameters={"lr": {"values": [1]}}, units=3, run_cap=None)
    assert (grid.tuning.strategy, grid.trainer.length) == ("Grid", 3)


def stopping(**more: Any) -> dict[str, Any]:
    """Early termination by Hyperband, as a change of a sweep."""
    return {"early_terminate": {"type": "hyperband", **more}}


def test_a_search_that_there_is_not_is_one_error(in_one_line: Job) -> None:
    one, many = ({"epochs": {"value": 9}, "lr": {"values": values}} for values in ([1], [*range(13)]))
    cases: list[tuple[dict[str, Any], tuple[object, ...]]] = [
        ({"method": "custom"}, ("method", "'custom'", "grid", "random", "bayes")),
        ({"method": None}, ("method", "grid", "random", "bayes")),
        ({"metric": None}, ("metric.name",)),
        ({"metric": {"name": "loss", "goal": "lower"}}, ("metric.goal", "'lower'", "minimize", "maximize")),
        ({"metric": {"name": "loss", "target": "low"}}, ("metric.target", "'low'", "number")),
        ({"metric": {"name": "loss", "gaol": "x"}}, ("metric.gaol", "'goal'")),
        ({"metric": "loss"}, ("metric", "'loss'", "keys")),
        ({"metrics": [{"name": "loss"}]}, ("metrics", "[{name: 'loss'}]", "objective", "metric")),
        ({"scheduler": {"engine": "optuna"}}, ("scheduler", "{engine: 'optuna'}", "Warmband", "tuning.searcher")),
        ({"run_cap": 0}, ("run_cap", 0, 1, 100000)),
        ({"metod": "grid"}, ("metod", "'method'")),
        ({"parameters": ENDLESS}, ("parameters", "epochs", "--units")),
        ({"parameters": ENDLESS, **stopping(min_iter=3)}, ("early_terminate", "epochs", "--units")),
        ({"early_terminate": {"type": "envelope"}}, ("early_terminate.type", "'envelope'", "hyperband", "W&B")),
        (stopping(), ("early_terminate", "min_iter", "max_iter")),
        (stopping(max_iter=9), ("early_terminate.s", "max_iter", "rungs")),
        (stopping(max_iter=2, s=1), ("early_terminate.max_iter", 2, "eta", 3)),
        (stopping(min_iter=99), ("early_terminate.min_iter", 99, 9)),
        (stopping(min_iter=3, eta=2.5), ("early_terminate.eta", 2.5, "whole", 2)),
        ({"method": "grid"}, ("parameters.lr", "method", "grid", "values", "distribution", "q_uniform")),
        ({"method": "grid", "parameters": many}, ("run_cap", 12, "method", "grid", 13, "random")),
        (
            {"method": "grid", "parameters": one, **stopping(min_iter=3)},
            ("early_terminate", "method", "strategy", "Grid", "random"),
        ),
    ]
    refuses_each(((partial(in_one_line, **changes), names) for changes, names in cases), ConfigurationError)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"run_cap": None}, ("run_cap", "W&B", "max_jobs", 20)),
        ({"metric": {"name": "loss"}}, ("metric.goal", "minimize", "W&B")),
        ({"metric": {"name": "loss", "impute": "best"}}, ("metric.impute", "value")),
        (stopping(min_iter=3, strict=True), ("early_terminate.strict",)),
        (stopping(min_iter=3), ("eta", 3, "W&B")),
        ({"project": "shop"}, ("project", "record")),
        ({"name": "My sweep"}, ("name", "'My sweep'", 32)),
        ({}, ("wandb.log", "warmband.report({'val/loss': value}")),
    ],
)
def test_what_was_chosen_is_a_comment(
    commented: Callable[..., str], changes: dict[str, Any], names: tuple[object, ...]
) -> None:
    commented(*names, **changes)


def test_a_name_that_a_job_can_have_is_its_name(job: Job) -> None:
    assert job(name="sweepdemo-1").name == "sweepdemo-1"
