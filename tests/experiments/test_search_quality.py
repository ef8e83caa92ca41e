"""Regret on recorded tasks, on a small synthetic table of each family."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

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
    page_tables,
    plan_for,
    regrets,
    summary,
)
from experiments.shared.recorded_tasks import FAMILIES, RecordedTask, bench, recorded_task, task_names
from hpo.ranges import IntegerParameter
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError

UNITS = 9
PACKAGES = ["syne_tune", "dehb"]
"""Those that only this comparison needs."""
TPE = "Optuna TPE, HyperbandPruner"
DATA = Path(os.environ.get("WARMBAND_DATA", "nowhere")).parent / "bench"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task of each family, of 200 configurations; in one of them some trainings diverge."""
    made, random = tmp_path_factory.mktemp("bench"), np.random.default_rng(3)
    for name, family in FAMILIES.items():
        rows = []
        for bounds in family.ranges.values():
            low, high = bounds.min_value, bounds.max_value
            even = random.uniform(size=200)
            if bounds.resolved_scaling == "Logarithmic":
                column = low * (high / low) ** even
            elif bounds.resolved_scaling == "ReverseLogarithmic":
                column = 1 - (1 - low) * ((1 - high) / (1 - low)) ** even
            else:
                column = low + (high - low) * even
            rows.append(np.round(column) if isinstance(bounds, IntegerParameter) else column)
        height = random.uniform(0.1, 1, 200)[:, None] * (1 - 0.7 ** np.arange(1, UNITS + 1))
        curves = 100 * height if name == "lcbench" else 1 - 0.9 * height
        if name == "taskset":
            curves[:30, 3:] = np.nan
        arrays: dict[str, Any] = {"config_names": list(family.ranges), f"{family.values}00": curves}
        np.savez(made / f"{name}.npz", **{family.configurations("00"): np.column_stack(rows)}, **arrays)
    return made


@pytest.fixture(scope="module", params=[f"{family}/00" for family in FAMILIES])
def task(request: pytest.FixtureRequest, folder: Path) -> RecordedTask:
    return recorded_task(folder, request.param)


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


@pytest.mark.parametrize("arm", ["Random", "Bayesian", "Hyperband, random", TPE])
@pytest.mark.parametrize("workers", [1, 4])
def test_regret_falls_with_the_budget_and_follows_from_the_seed(arm: str, workers: int, task: RecordedTask) -> None:
    found = regrets(task, arm, workers, 1)
    assert len(found) == BUDGETS[-1]
    assert found == sorted(found, reverse=True)
    assert found[-1] >= 0
    assert regrets(task, arm, workers, 1) == found


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


def test_optuna_s_gaussian_process_searches_too(task: RecordedTask) -> None:
    seen = optuna_on_curves.simulate(task, optuna_on_curves.gaussian_process, seed=1, workers=1, seconds=3 * UNITS)
    assert len(seen.seconds) > UNITS


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
    assert set(tables) == {f"summary-{n}" for n in (1, 4)} | {f"tasks-{n}-{b}" for n in (1, 4) for b in BUDGETS}
    assert all(made in (tmp_path / "tables.md").read_text() for made in tables.values())
    assert {path.name for path in (tmp_path / "pictures").iterdir()} >= {"regret-1.png", "regret-4.svg"}
    search_quality.main(**asked, tasks=None, processes=1)
    assert capsys.readouterr().out.count("done before") == 8


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


@pytest.mark.skipif(not (DATA / "lcbench.npz").is_file(), reason="no recorded tasks beside the folder of WARMBAND_DATA")
def test_recorded_configurations_are_spread_evenly_over_the_ranges() -> None:
    """Else a suggestion's nearest one is nearly always one of a few."""
    for name in task_names(DATA):
        curves = recorded_task(DATA, name).curves
        assert curves.left_out == curves.ended_early == 0
        assert np.abs(np.median(curves._places, axis=0) - 0.5).max() < 0.06
