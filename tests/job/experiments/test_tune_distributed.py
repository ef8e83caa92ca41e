"""The closing table of the blog's tuning job: its figures, its words, and a job that is not run again."""

from __future__ import annotations

import io
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from experiments.shared.published import Options, Steps
from experiments.shared.searches import Outcome, Searches, rows
from experiments.tune_distributed import (
    Way,
    run,
    verdict,
)
from hpo import HyperparameterTuner
from hpo.cost.ledger import Kind
from hpo.jobs.recorder import JobRecord
from hpo.record.store import JobRow, Store
from hpo.sagemaker.analytics import tuned_trials
from hpo.search.trial import status_of
from hpo.strategies.hyperband import run_all
from tests.support.experiments.tune_distributed import AIM, few, small
from tests.support.refusals import refuses
from tests.support.simulated import METRIC, simulate
from trainers import WarmbandError


def test_all_searches_try_the_same_configurations_and_are_run_once(tmp_path: Path) -> None:
    """In hand, on few rows: trials, stops, the table; a second run that only reads, and a quick one that does, too."""
    options = Options(out=tmp_path)
    dataset, problem = few(), small(tmp_path)
    printed = io.StringIO()
    console = Console(file=printed)
    for again in range(2):
        with Steps(tmp_path, console.print) as steps:
            searches = Searches(steps=steps, folder=tmp_path, console=console)
            came = run(problem, dataset, options, searches)
        with Store(searches.store) as store:
            assert len(store.jobs()) == 3, f"in run {again}"
    full, cut, equal = (came.outcomes[way][0] for way in (Way.TO_THE_END, Way.HYPERBAND, Way.EQUAL))
    with Store(searches.store) as store:
        tried = [[trial.hyperparameters for trial in tuned_trials(store, each.job)] for each in (full, cut, equal)]
        ended = [[trial.objective for trial in tuned_trials(store, each.job)] for each in (full, equal)]
    assert tried[0] == tried[1]
    first = len(tried[2])
    assert tried[2] == tried[0][:first]
    assert ended[1] == ended[0][:first]
    assert equal.units == 9 * first
    assert abs(equal.units - cut.units) <= 4.5
    assert full.units == 81
    assert cut.units < 81
    assert cut.trials["Stopped"] > 0
    assert printed.getvalue().count("done before") == 4
    with Steps(tmp_path, console.print) as steps:
        searches = Searches(steps=steps, folder=tmp_path, console=console)
        quick = run(problem, dataset, replace(options, quick=True), searches)
        with Store(searches.store) as store:
            assert len(store.jobs()) == 3
    [read] = quick.outcomes[Way.EQUAL]
    costs = {name: getattr(equal, name) for name in ("worker_seconds", "training", "seconds")}
    assert replace(read, **costs, job=equal.job) == equal, "what is read is what is found when they are trained"
    assert quick.equal_is_read
    assert not came.equal_is_read
    assert rows(dataset) == came.rows == 500
    assert verdict(came)
    assert came.outcomes[Way.UNTUNED][0].standard_error == pytest.approx(cut.standard_error, rel=0.5)


@pytest.mark.parametrize(("count", "lost", "lost_later"), [(1, [2], [8]), (4, [0, 3], []), (9, [3], [])])
def test_the_first_trials_are_billed_as_a_search_of_them_alone(
    tmp_path: Path, count: int, lost: list[int], lost_later: list[int]
) -> None:
    """On a simulated clock, where both bills are exact, with gangs that are lost on the way."""
    searches = Searches(steps=Steps(tmp_path, print), folder=tmp_path, console=Console(quiet=True))

    def search(job: str, jobs: int, losses: list[int]) -> Outcome:
        with Store(searches.store) as store:
            store.create_job(JobRow(name=job, created_at=0.0, spec=AIM))
            with store.writer(job) as writer:
                controller, *_ = simulate(
                    plan=run_all(jobs, 9),
                    parallel=1,
                    record=JobRecord(writer, METRIC),
                    losses=frozenset(losses),
                    probes=(1, 2),
                    static={"eta": 0.3},
                )
        best, statuses = controller.best(), [status_of(trial) for trial in controller.runs.values()]
        assert best is not None
        return Outcome(
            validation=controller.objective(best),
            test=0.0,
            worker_seconds=controller.ledger.total,
            training=controller.ledger.totals[Kind.TRAINING],
            gangs=controller.ledger.gangs,
            seconds=controller.seconds,
            units=controller.trained,
            best=best.hyperparameters,
            job=job,
            trials={status: statuses.count(status) for status in ("Completed", "Stopped")},
        )

    problem, dataset = small(tmp_path), few()
    whole, alone = search("whole", 9, lost + lost_later), search("alone", count, lost)
    read = searches.first(whole, count, problem, dataset)
    for name in ("worker_seconds", "training", "seconds"):
        assert getattr(read, name) == pytest.approx(getattr(alone, name)), name
        assert getattr(read, name) <= getattr(whole, name)
    same = {field.name for field in fields(Outcome)} - {"worker_seconds", "training", "seconds", "test", "job"}
    same.remove("standard_error")
    assert {name: getattr(read, name) for name in same} == {name: getattr(alone, name) for name in same}


def test_a_search_that_was_stopped_is_no_search_and_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `hpo stop` leaves it: `fit` returns without an error."""
    problem, dataset = small(tmp_path), few()
    trainer, fit = problem.trainer(0, 9), HyperparameterTuner.fit

    def stopped(tuner: HyperparameterTuner, *given: Any, job_name: str) -> None:
        fit(tuner, *given, job_name=job_name)
        with Store(f"sqlite:///{tmp_path}/warmband.db") as store:
            store.update_job(job_name, status="Stopped", reason="stop_tuning_job")

    with Steps(tmp_path, print) as steps:
        searches = Searches(steps=steps, folder=tmp_path, console=Console(quiet=True))
        with monkeypatch.context() as patched:
            patched.setattr(HyperparameterTuner, "fit", stopped)
            with refuses(WarmbandError, field="cut", value="Stopped", remedy="stop_tuning_job"):
                searches.search("cut", problem, dataset, trainer=trainer, min_resource=9, seed=1)
        came = searches.search("cut", problem, dataset, trainer=trainer, min_resource=9, seed=1)
    assert (came.job, came.units) == ("cut-2", 81)
