"""Regret on recorded tasks, on a small synthetic table of each family."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import search_quality
from experiments.baselines import optuna_on_curves
from experiments.search_quality import (
    BUDGETS,
    page_tables,
    regrets,
)
from experiments.shared.recorded_tasks import RecordedTask, recorded_task, task_names
from tests.support.experiments.search_quality import UNITS, folder, task  # noqa: F401  # Fixtures.

TPE = "Optuna TPE, HyperbandPruner"
DATA = Path(os.environ.get("WARMBAND_DATA", "nowhere")).parent / "bench"


@pytest.mark.parametrize("arm", ["Random", "Bayesian", "Hyperband, random", TPE])
@pytest.mark.parametrize("workers", [1, 4])
def test_regret_falls_with_the_budget_and_follows_from_the_seed(arm: str, workers: int, task: RecordedTask) -> None:
    found = regrets(task, arm, workers, 1)
    assert len(found) == BUDGETS[-1]
    assert found == sorted(found, reverse=True)
    assert found[-1] >= 0
    assert regrets(task, arm, workers, 1) == found


def test_idle_workers_count(task: RecordedTask) -> None:
    """Sixteen workers have each 1.25 trainings' time: what they see is of 16 whole trials, and of 16 begun ones."""
    seen = optuna_on_curves.simulate(task, optuna_on_curves.tpe, seed=1, workers=16, seconds=20 * UNITS / 16)
    assert max(seen.seconds) <= 20 * UNITS / 16
    assert len(seen.seconds) <= 20 * UNITS
    assert np.isnan(seen.best_at(0.5))


@pytest.mark.parametrize("make", [optuna_on_curves.tpe, optuna_on_curves.gaussian_process])
def test_a_study_is_told_of_the_recorded_configurations(make: Any, task: RecordedTask) -> None:
    study = make(1, UNITS, 1)
    study.sampler = sampler = optuna_on_curves.OnTable(study.sampler, task)
    for number in range(12):
        study.tell(study.ask(sampler.space), float(number))
    assert len(set(sampler.rows.values())) == 12
    for number, row in sampler.rows.items():
        recorded = task.curves.configurations[row]
        told = {
            name: 1 - value if name in ("beta1", "beta2") else value
            for name, value in study.trials[number].params.items()
        }
        assert told == pytest.approx(recorded)


def test_a_run_writes_its_figures_and_does_no_step_twice(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"bench_": folder, "seeds": 2, "workers": [1, 4], "arms": ["Random", "Hyperband, random"], "out": tmp_path}
    search_quality.main(**asked, tasks=None, processes=1)
    capsys.readouterr()
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["tasks"] == ["lcbench/00", "taskset/00"]
    assert [len(runs) for runs in result["regrets"]["4"]["taskset/00"].values()] == [2, 2]
    tables = page_tables(result)
    by_budget = {f"{name}-{n}-{b}" for name in ("tasks", "short") for n in (1, 4) for b in BUDGETS}
    assert set(tables) == {f"summary-{n}" for n in (1, 4)} | by_budget
    assert all(made in (tmp_path / "tables.md").read_text() for made in tables.values())
    assert {path.name for path in (tmp_path / "pictures").iterdir()} >= {"regret-1.png", "regret-4.svg"}
    search_quality.main(**asked, tasks=None, processes=1)
    assert capsys.readouterr().out.count("done before") == 8


@pytest.mark.skipif(not (DATA / "lcbench.npz").is_file(), reason="no recorded tasks beside the folder of WARMBAND_DATA")
def test_recorded_configurations_are_spread_evenly_over_the_ranges() -> None:
    """Else a suggestion's nearest one is nearly always one of a few."""
    for name in task_names(DATA):
        curves = recorded_task(DATA, name).curves
        assert curves.left_out == curves.ended_early == 0
        assert np.abs(np.median(curves._places, axis=0) - 0.5).max() < 0.06
