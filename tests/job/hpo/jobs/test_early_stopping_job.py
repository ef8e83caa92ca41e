"""Early stopping by the median rule as a job: its record, its resume, its doors, and what it refuses."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from ray.tune.schedulers import FIFOScheduler

from hpo import HyperparameterTuner
from hpo.strategies.random_strategy import RandomStrategy
from hpo.strategies.strategy import Prepared, Task
from tests.support.driving import CHANNELS, Counting, answer
from tests.support.hpo.jobs.early_stopping_job import tuner


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(CHANNELS, job_name="job")
    return answer(folder, "job")


def test_trials_are_stopped_at_the_rungs_of_the_plan_for_any_number_at_once(
    whole: dict[str, Any], tmp_path: Path
) -> None:
    made = tuner(tmp_path, max_parallel_jobs=3)
    assert [bracket.rungs for bracket in made.plan().brackets] == [(1, 3, 9)]
    made.fit(CHANNELS, job_name="job")
    assert answer(tmp_path, "job") == whole
    units = [resource for name, _, resource, *_ in whole["trials"] if name != "untuned"]
    assert {"Stopped", "Completed"} == {status for _, status, *_ in whole["trials"]}
    assert set(units) <= {1, 3, 9}
    described = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").describe()
    assert described["HyperParameterTuningJobConfig"]["TrainingJobEarlyStoppingType"] == "Auto"
    assert described["TrainingJobStatusCounters"]["Stopped"] == sum(unit < 9 for unit in units)


def test_stopped_and_resumed_it_gives_the_same_answer(whole: dict[str, Any], tmp_path: Path) -> None:
    made = tuner(tmp_path, (Counting(20, lambda: signal.raise_signal(signal.SIGINT)),))
    with pytest.raises(KeyboardInterrupt):
        made.fit(CHANNELS, job_name="job")
    assert answer(tmp_path, "job")["status"][0] == "Stopped"
    again = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db")
    assert (again.early_stopping_type, again.plan()) == ("Auto", made.plan())
    again.resume(inputs=CHANNELS)
    found = answer(tmp_path, "job")
    assert {**found, "used": 0} == {**whole, "used": 0}


def test_with_more_trials_it_is_the_job_that_had_so_many_from_its_start(whole: dict[str, Any], tmp_path: Path) -> None:
    tuner(tmp_path, max_jobs=6).fit(CHANNELS, job_name="job")
    again = HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db")
    again.resume(inputs=CHANNELS, max_jobs=9)
    found = answer(tmp_path, "job")
    assert (found["trials"], found["best"]) == (whole["trials"], whole["best"])
    assert HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db").plan() == tuner(tmp_path).plan()


class AllToTheEnd(RandomStrategy):
    """A user's own, with a scheduler that knows nothing of the plan and stops nobody."""

    def prepare(self, task: Task) -> Prepared:
        made = super().prepare(task)
        return Prepared(searcher=made.searcher, scheduler=FIFOScheduler(), plan=task.plan)


def test_the_rule_takes_the_place_of_a_scheduler_of_the_users_own(whole: dict[str, Any], tmp_path: Path) -> None:
    made = tuner(tmp_path)
    made.strategy = AllToTheEnd()
    made.fit(CHANNELS, job_name="job")
    assert answer(tmp_path, "job") == whole
