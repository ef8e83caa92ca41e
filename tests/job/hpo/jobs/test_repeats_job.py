"""Configurations that several trials train, as a job: its record and its words, killed and resumed, and its doors."""

from __future__ import annotations

import io
import json
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
from rich.console import Console

from hpo import HyperparameterTuner, TuningJobCompletionCriteriaConfig
from hpo.observers import show_summary
from hpo.record.store import Store
from hpo.report import JobData, Measured, Table
from hpo.report.page.result import result
from hpo.report.pictures.progress import progress
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from hpo.strategies.repeats import mean, repeated
from tests.support.drivers import Disturbance
from tests.support.driving import CHANNELS, answer, tuner
from tests.support.job_life import LOST, World
from tests.support.job_search import Aim
from tests.support.listed import hpo
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError

PLANS = [lay_out(5, 1, 9), run_all(4, 3), with_median_rule(run_all(6, 9))]


def lived(plan: Plan, parallel: int, killed: tuple[tuple[int, int], ...] = (), **aim: Any) -> dict[str, Any]:
    """The answer of a job whose drivers are killed at these moments."""
    with closing(World(aim=Aim(plan=repeated(plan, 3), **aim), parallel=parallel)) as world:
        for moment in killed:
            world.drive(Disturbance(acts={moment: partial(world.kill, heard=False)}, written_every=1))
            world.now += LOST
        world.drive(Disturbance())
        assert world.check().status == "Completed"
        rows = [] if "criteria" in aim else world.rows()[1]  # Others are trained ahead, and do not count.
        ends = [(row.number, row.status, row.resource) for row in rows if row.number >= 0]
        return {**world.answer(), "all": ends}


@pytest.mark.parametrize("plan", PLANS, ids=["hyperband", "all", "median"])
@pytest.mark.parametrize("learns", [False, True])
def test_one_answer_for_any_number_of_gangs_and_drivers(plan: Plan, learns: bool) -> None:
    one = lived(plan, 1, learns=learns)
    assert len(one["all"]) == 3 * plan.trials
    assert lived(plan, 4, learns=learns) == one
    assert lived(plan, 2, ((4, 1), (6, 3)), learns=learns) == one


def test_criteria_judge_configurations_by_their_means() -> None:
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.4)
    one = lived(run_all(8, 3), 1, criteria=criteria)
    mentions(one["status"][1], "target_objective_metric_value", "0.4")
    *_, first, _, last = one["trials"]
    assert (first[0] % 3, last[0], first[4]) == (0, first[0] + 2, last[4])
    assert mean(trial[2] for trial in one["trials"][-3:]) >= 0.4
    assert lived(run_all(8, 3), 4, criteria=criteria) == one
    assert lived(run_all(8, 3), 2, ((5, 1),), criteria=criteria) == one


def test_the_winner_is_of_the_best_mean_everywhere(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    made = tuner(tmp_path, max_jobs=15, repeats=3)
    assert made.plan().brackets[0].sizes[0] % 3 == 0
    made.fit(CHANNELS, job_name="job")
    with Store(store) as record:
        rows, summary = [row for row in record.trials("job") if row.number >= 0], record.job("job").summary
    groups = [rows[start : start + 3] for start in range(0, 15, 3)]
    for group in groups:
        assert len({row.resource for row in group}) == 1
        assert group[0].hyperparameters == group[1].hyperparameters == group[2].hyperparameters
        assert len({row.objective for row in group}) > 1  # Rows are drawn by a seed of each trial's own.
    means = [mean(row.objective or 0.0 for row in group) for group in groups]
    best = max(groups, key=lambda group: (means[groups.index(group)], -group[0].resource))
    winner = max(best, key=lambda row: (row.objective or 0.0, -row.number))
    assert made.best_training_job() == summary["best"]["trial"] == winner.trial_id
    error = stdev(row.objective or 0.0 for row in best) / 3**0.5
    assert summary["best"]["repeats"] == {
        "values": [row.objective for row in best],
        "mean": pytest.approx(max(means)),
        "standard_error": pytest.approx(error),
    }
    assert winner.checkpoint
    frame = made.analytics().dataframe()
    assert list(frame["Configuration"]) == [number // 3 for number in range(15)]
    assert list(frame["MeanObjectiveValue"][::3]) == pytest.approx(means)
    head, first, *_ = hpo("trials", "job", "--store", store, columns=200).splitlines()
    mentions(head, "mean", "3")
    assert first.startswith(winner.trial_id)
    whole = f"{max(means):.5f} \u00b1 {error:.5f}"
    (line,) = [line for line in hpo("describe", "job", "--store", store, columns=200).splitlines() if whole in line]
    mentions(line, whole, "mean", "3", f"{winner.objective:.5f}")
    described = made.describe()["BestTrainingJob"]
    assert described["MeanObjectiveValue"] == pytest.approx(max(means))
    assert described["MeanObjectiveStandardError"] == pytest.approx(error)
    printed = io.StringIO()
    Console(file=printed, width=120).print(show_summary("job", "Completed", "validation:auc", summary))
    (line,) = [line for line in printed.getvalue().splitlines() if whole in line]
    mentions(line, whole, "mean", "3")
    data = JobData.read(Store(store), "job")
    curve = progress(data)
    assert curve is not None
    assert curve.best[-1] == pytest.approx(max(means))
    assert all(any(abs(value - mean) < 1e-9 for mean in _means_on_the_way(data)) for value in curve.best)
    table = result(data).blocks[0]
    assert isinstance(table, Table)
    (row,) = [row for row in table.rows if best[0].trial_id in str(row[0])]
    mentions(str(row[0]), "best", "mean", best[0].trial_id, best[-1].number)
    assert row[1] == Measured(pytest.approx(max(means)), pytest.approx(error))
    (listed,) = json.loads(hpo("jobs", "--json", "--store", store))
    assert listed["BestObjectiveValue"] == pytest.approx(max(means))


def _means_on_the_way(data: JobData) -> list[float]:
    """The means of each configuration's trials at every unit that all of them reported."""
    found = []
    for first in range(0, len(data.trials), 3):
        curves = [data.compared(trial.trial_id) for trial in data.trials[first : first + 3]]
        found += [mean(curve[step] for curve in curves) for step in curves[0] if all(step in each for each in curves)]
    return found


def test_it_is_attached_to_and_has_more_configurations(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    tuner(tmp_path, max_jobs=6, repeats=2).fit(CHANNELS, job_name="job")
    again = HyperparameterTuner.attach("job", store=store)
    assert (again.repeats, again.max_jobs, again.plan().repeats) == (2, 6, 2)
    with refuses(ConfigurationError, field=("max_jobs", "repeats", "2"), value=9, remedy=("8", "10")):
        again.resume(inputs=CHANNELS, max_jobs=9)
    again.resume(inputs=CHANNELS, max_jobs=10)
    assert len(answer(tmp_path, "job")["trials"]) == 11  # The un-tuned run among them.
    assert again.describe()["TrainingJobStatusCounters"]["InProgress"] == 0
