"""Regret on recorded tasks, on a small synthetic table of each family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import search_quality
from experiments.baselines import on_curves, optuna_on_curves
from experiments.search_quality import (
    ARMS,
    BUDGETS,
    OTHERS,
    STRATEGIES,
    by_task,
    installed_arms,
    plan_for,
    summary,
)
from experiments.shared.recorded_tasks import FAMILIES, RecordedTask, bench, recorded_task, task_names
from tests.support.experiments.search_quality import UNITS, folder, task  # noqa: F401  # Fixtures.
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError

PACKAGES = ["syne_tune", "dehb"]
"""Those that only this comparison needs."""


def test_tasks_are_found_and_read(folder: Path) -> None:
    assert task_names(folder) == ["lcbench/00", "taskset/00"]
    losses = recorded_task(folder, "taskset/00").curves
    assert (len(losses), losses.left_out, losses.units) == (200, 0, UNITS)
    assert (losses.diverged_at == 4).sum() == 30
    assert np.nanmin(losses.values) > 0, "of losses below 1, the negative logarithm"
    with refuses(ConfigurationError, field="task", value="'lcbench/01'", remedy=("lcbench/00", "taskset/00")):
        recorded_task(folder, "lcbench/01")


def test_a_folder_without_tasks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMBAND_DATA", str(tmp_path / "data"))
    with refuses(ConfigurationError, field="bench", remedy=tuple(f"{family}.npz" for family in FAMILIES)):
        bench(None)


@pytest.mark.parametrize("arm", STRATEGIES)
@pytest.mark.parametrize("workers", [1, 16])
def test_a_plan_is_for_the_budget_and_little_more(arm: str, workers: int, task: RecordedTask) -> None:
    plan = plan_for(STRATEGIES[arm](UNITS), task, workers)
    least = (BUDGETS[-1] + workers - 1) * UNITS
    assert least <= plan.resource <= 1.5 * least


def test_random_search_sees_as_many_trials_as_the_budget_pays_for(task: RecordedTask) -> None:
    """One worker, 20 trainings: the best of the table's curves that 20 trials went along."""
    strategy = STRATEGIES["Random"](UNITS)
    assert plan_for(strategy, task, 1).trials == BUDGETS[-1]


def test_optuna_s_gaussian_process_searches_too(task: RecordedTask) -> None:
    seen = optuna_on_curves.simulate(task, optuna_on_curves.gaussian_process, seed=1, workers=1, seconds=3 * UNITS)
    assert len(seen.seconds) > UNITS


def test_tables_have_means_errors_ranks_and_how_often_one_is_best() -> None:
    result = {
        "budgets": [1, 2],
        "arms": ["A", "B"],
        "regrets": {"1": {"one": {"A": [[0.5, 0.1], [0.7, 0.3]], "B": [[0.5, 0.25], [0.5, 0.25]]}}},
        "seconds": {"1": {"A": 0.5, "B": 2.0}},
    }
    assert summary(result, 1) == [
        ("A", "0.600 ± 0.100", "0.200 ± 0.100", "1.0", "1 of 1", "0.50"),
        ("B", "0.500 ± 0.000", "0.250 ± 0.000", "2.0", "1 of 1", "2.00"),
    ]
    assert by_task(result, 1, 1) == [("one", "0.200 ± 0.100", "0.250 ± 0.000")]


def test_an_unknown_search_is_refused(folder: Path, tmp_path: Path) -> None:
    with refuses(ConfigurationError, field="--arms", value="'TPE'", remedy=("Random", "Bayesian")):
        search_quality.main(folder, 1, None, ["TPE"], None, 1, tmp_path)
    assert len(set(ARMS)) == len(ARMS)


def test_an_arm_without_its_package_is_left_out_or_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_curves, "find_spec", lambda module: None if module in PACKAGES else object())
    lines: list[str] = []
    assert installed_arms(None, lines.append) == [arm for arm in ARMS if OTHERS.get(arm) not in PACKAGES]
    remedy = "pip install -c constraints.txt -e '.[baselines]'"
    mentions(lines[-1], "DEHB", "dehb", "installed", remedy)
    with refuses(ConfigurationError, field="DEHB", value="dehb", remedy=("installed", remedy)):
        installed_arms(["Random", "DEHB"], lines.append)
    assert installed_arms(["Random"], lines.append) == ["Random"]
    assert len(lines) == sum(module in PACKAGES for module in OTHERS.values())
