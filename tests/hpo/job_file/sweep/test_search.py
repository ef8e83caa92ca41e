"""Methods, metrics and early termination of sweeps as a job's search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hpo.job_file.models import JobSpec
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
    tuning = job(method="bayes", parameters=ENDLESS, units=40).tuning
    assert tuning.hyperband is not None
    assert (tuning.hyperband.min_resource, tuning.hyperband.max_resource) == (40, 40)
    assert (tuning.strategy, tuning.hyperband.suggestions) == ("Hyperband", "model")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"method": "custom"}, "method is 'custom'; give grid, random or bayes"),
        ({"method": None}, "method is missing; give grid, random or bayes"),
        ({"metric": None}, "metric.name is missing; give the name of what trials are compared by"),
        ({"metric": {"name": "loss", "goal": "lower"}}, "metric.goal is 'lower'; give minimize or maximize"),
        ({"metric": {"name": "loss", "target": "low"}}, "metric.target is 'low'; give a number"),
        ({"metric": {"name": "loss", "gaol": "x"}}, "metric.gaol: unknown key; did you mean 'goal'?"),
        ({"metric": "loss"}, "metric is 'loss'; give a group of keys"),
        ({"metrics": [{"name": "loss"}]}, "a job has one objective; give metric"),
        ({"scheduler": {"engine": "optuna"}}, "scheduler is {engine: 'optuna'}: Warmband has its own; leave it out"),
        ({"run_cap": 0}, "run_cap is 0; give a whole number from 1 to"),
        ({"metod": "grid"}, "metod: unknown key; did you mean 'method'?"),
        ({"parameters": ENDLESS}, "nothing says how often a trial reports its metric: no parameter is called epochs"),
        ({"parameters": ENDLESS, "early_terminate": {"type": "hyperband", "min_iter": 3}}, "give --units N, at least"),
        (
            {"early_terminate": {"type": "envelope"}},
            "early_terminate.type is 'envelope'; give hyperband, which W&B has",
        ),
        (
            {"early_terminate": {"type": "hyperband"}},
            "early_terminate has neither min_iter nor max_iter; give max_iter",
        ),
        ({"early_terminate": {"type": "hyperband", "max_iter": 9}}, "early_terminate.s is missing beside max_iter"),
        ({"early_terminate": {"type": "hyperband", "max_iter": 2, "s": 1}}, "max_iter is 2, less than eta, 3, so no"),
        (
            {"early_terminate": {"type": "hyperband", "min_iter": 99}},
            "min_iter is 99, and a trial ends at 9; give less",
        ),
        (
            {"early_terminate": {"type": "hyperband", "min_iter": 3, "eta": 2.5}},
            "early_terminate.eta is 2.5; give a whole number, 2 or more",
        ),
        ({"method": "grid"}, "parameters.lr has no end of values, and method is grid; give values, or distribution"),
        (
            {"method": "grid", "parameters": {"epochs": {"value": 9}, "lr": {"values": [*range(13)]}}},
            "run_cap is 12, and method grid has 13 combinations, which Warmband tries all; leave it out",
        ),
        (
            {
                "method": "grid",
                "parameters": {"epochs": {"value": 9}, "lr": {"values": [1]}},
                "early_terminate": {"type": "hyperband", "min_iter": 3},
            },
            "early_terminate with method grid: strategy Grid trains every trial to its end; leave it out",
        ),
        (
            {"method": "grid", "parameters": {"lr": {"values": [1]}}, "units": 3},
            "method is grid, which takes a trial's",
        ),
    ],
)
def test_a_search_that_there_is_not_is_one_error(job: Job, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        job(**changes)
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"run_cap": None}, "# run_cap is not given, and W&B's sweep goes on until somebody stops it: max_jobs is 20"),
        ({"metric": {"name": "loss"}}, "metric.goal is minimize, as it is for W&B where a sweep has none"),
        (
            {"metric": {"name": "loss", "impute": "best"}},
            "metric.impute is left out: a trial without a value counts as",
        ),
        (
            {"early_terminate": {"type": "hyperband", "min_iter": 3, "strict": True}},
            "early_terminate.strict is left out",
        ),
        (
            {"early_terminate": {"type": "hyperband", "min_iter": 3}},
            "eta is 3, as it is for W&B where a sweep has none",
        ),
        ({"project": "shop"}, "project is left out: Warmband keeps jobs in its own record"),
        ({"name": "My sweep"}, "name 'My sweep' is left out: a job's has at most 32 letters, digits and hyphens"),
        ({}, "# wandb.log prints nothing that could be read: let the program call warmband.report({'val/loss': value}"),
    ],
)
def test_what_was_chosen_is_a_comment(converted: Callable[..., str], changes: dict[str, Any], told: str) -> None:
    assert told in converted(**changes)


def test_a_name_that_a_job_can_have_is_its_name(job: Job) -> None:
    assert job(name="sweepdemo-1").name == "sweepdemo-1"
