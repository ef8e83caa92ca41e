"""What a report reads of a job, whatever has become of it."""

import math
from dataclasses import replace
from importlib import import_module

import pytest

from hpo.record.store import JobRow, Store
from hpo.report.data import JobData
from hpo.report.pictures.gantt import brackets
from tests.support.records import HOSTILE, made_up, write
from tests.support.refusals import mentions, refuses
from trainers import TRAINERS
from trainers.errors import ConfigurationError


def test_what_is_read_is_what_was_written(home):
    data = made_up(hostile=True)
    with Store() as store:
        write(store, data)
        read = JobData.read(store, data.title)
    assert (read.trials, read.untuned, read.ledger) == (data.trials, data.untuned, data.ledger)
    assert read.reports.keys() == data.reports.keys()
    for trial, reports in data.reports.items():
        assert [(each.step, each.objective) for each in read.reports[trial]] == [
            (each.step, each.objective) for each in reports
        ]
    assert (read.metric, read.best, read.billed) == (data.metric, data.best, data.billed)


def test_a_mistyped_name_is_an_error(home):
    with Store() as store, refuses(ConfigurationError, field="typo"):
        JobData.read(store, "typo")


def test_what_is_billed_adds_up():
    data = made_up()
    assert list(data.billed) == ["starting", "training", "checkpointing", "idle"]
    assert sum(data.billed.values()) == pytest.approx(sum(data.billed_by_trial.values()))
    assert data.billed["starting"] == 4 * 3 * 20.0  # Gangs of three that came up after 8, 16, 24 and 32 seconds


def test_the_best_is_the_jobs_own():
    data = made_up()
    assert data.objective(data.best) == max(
        trial.objective for trial in data.trials if trial.status not in ("Failed", "Diverged") and trial.objective
    )
    smallest = made_up(maximize=False)
    assert smallest.objective(smallest.best) < 0.3


def test_rungs_are_those_of_all_brackets():
    data = made_up()
    assert data.rungs == (1, 3, 9, 27)
    assert data.max_resource == 27


def test_units_are_called_what_the_trainer_calls_them():
    data = made_up()
    assert data.unit == "round"  # Of a record without the word, as older ones are.
    called = {name: getattr(import_module(module), name).unit for name, module in TRAINERS.items()}
    for name, unit in {**called, "shop.trainers:Own": "unit"}.items():
        older = replace(data.job, spec={"estimator": {"trainer": name}})
        assert replace(data, job=older).unit == unit
    assert replace(data, job=replace(data.job, spec={**data.job.spec, "unit": "tree"})).unit == "tree"


def test_a_job_whose_driver_is_gone_has_failed():
    data = made_up(ended=False)
    assert data.status == "InProgress"
    gone = replace(data, job=replace(data.job, silent=61.0))
    assert gone.status == "Failed"
    mentions(gone.reason, "61 s", "hpo resume made-up")


def test_older_records_say_how_large_a_gang_was_by_what_they_billed():
    data = made_up()
    older = replace(data, ledger=tuple(replace(entry, workers=0) for entry in data.ledger))
    assert brackets(older).title == brackets(data).title
    mentions(brackets(data).title, "4 gangs", "3 workers", "8%")


def test_a_job_may_have_any_name():
    data = JobData(job=JobRow(name=HOSTILE, created_at=1.0, spec=made_up().job.spec), reports={})
    assert data.title == HOSTILE
    assert data.best is None
    assert math.isclose(sum(data.billed.values()), 0)
