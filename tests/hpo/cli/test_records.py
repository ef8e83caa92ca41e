"""Commands that read the record or stop a job, on a record filled by hand; and files that commands write."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from hpo import HyperparameterTuner
from hpo.cli import app
from hpo.cli.reference import OPTIONS, options_table, reference
from hpo.cli.views import ago, value_text
from hpo.job_file.models import JobSpec, json_schema
from hpo.job_file.reading import read_job
from hpo.observers.lines import kept
from hpo.record.store import JobRow, LedgerRow, Store, TrialRow
from hpo.record.tables import LOST_AFTER
from tests.support import yaml_text
from tests.support.boosting import make
from tests.support.calls import calls_of
from tests.support.rows import silence
from tests.support.terminals import terminal_of
from trainers.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[3]
BANK = ROOT / "experiments" / "bank-marketing.yaml"


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    """The default store, with nothing in it."""
    with Store() as opened:
        yield opened


@cache
def bank() -> HyperparameterTuner:
    return HyperparameterTuner(**read_job(BANK).arguments())


def spec(**changes: Any) -> dict[str, Any]:
    inputs = {"train": {"kind": "pandas", "rows": 35009, "columns": ["y", "x"], "files": []}}
    return {**bank().settings.to_json({}, 1729), "inputs": inputs, **changes}


def job(store: Store, name: str, *, values: list[float | None], age: float = 120.0, **changes: Any) -> None:
    """A job that has ended, with a trial for each value; None failed."""
    now = time.time()
    plan = bank().plan().to_json()
    store.create_job(JobRow(name=name, created_at=now - age, spec=spec(**changes.pop("spec", {})), plan=plan))
    with store.writer(name) as writer:
        for number, value in enumerate(values):
            writer.trial(
                TrialRow(
                    job=name,
                    trial_id=f"{name}-{number:03d}",
                    number=number,
                    status="Failed" if value is None else "Completed",
                    hyperparameters={"eta": 0.1 * number + 0.123456, "max_depth": number, "booster": "[b]dart[/]"},
                    resource=30,
                    objective=value,
                    checkpoint=f"/models/{name}-{number:03d}",
                    failure_reason="" if value is not None else f"bad [bold]luck[/bold] {number}",
                    traceback="" if value is not None else "Traceback: line 7",
                    started_at=now - 60,
                    ended_at=now - 30,
                )
            )
            writer.ledger(LedgerRow(job=name, trial_id="", gang="g", kind="idle", worker_seconds=1.0, at=now))
            trial = f"{name}-{number:03d}"
            writer.ledger(LedgerRow(job=name, trial_id=trial, gang="g", kind="training", worker_seconds=2.5, at=now))
        # The un-tuned run is not one of the trials.
        writer.trial(TrialRow(job=name, trial_id="untuned", number=-1, objective=0.999, ended_at=now))
        writer.job(**{"status": "Completed", "ended_at": now - 10} | changes)


def hpo(*arguments: str, columns: int = 80, code: int = 0) -> str:
    """What a command prints."""
    result = CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(app, arguments)
    if isinstance(result.exception, ConfigurationError):
        assert code == 2, result.exception
        return str(result.exception)
    assert result.exit_code == code, result.output
    assert all(len(line) <= columns for line in result.stdout.splitlines() if not line.lstrip().startswith(("{", '"')))
    return result.stdout


# ---- jobs


def test_an_empty_store_is_one_line_that_helps(store: Store) -> None:
    assert hpo("jobs", columns=200) == f"No jobs in {store.url}. To run the first: hpo init, then hpo tune job.yaml\n"
    assert json.loads(hpo("jobs", "--json")) == []


def test_jobs_are_listed_newest_first(store: Store) -> None:
    job(store, "old", values=[0.5, 0.75, None], age=3 * 86400)
    job(store, "new", values=[], status="Failed", reason="no gang came up")
    job(store, "least", values=[0.3, 0.2], age=7200, spec={"objective_type": "Minimize", "strategy": "Random"})
    head, *lines = hpo("jobs").splitlines()
    assert head.split() == ["job", "status", "strategy", "trials", "best", "worker-s", "age"]
    assert [line.split() for line in lines] == [
        ["new", "Failed", "Hyperband", "0/30", "-", "0", "2", "min"],
        ["least", "Completed", "Random", "2/30", "0.20000", "7", "2", "h"],
        ["old", "Completed", "Hyperband", "3/30", "0.75000", "10", "3", "d"],
    ]
    new, least, old = json.loads(hpo("jobs", "--json"))
    assert (new["FailureReason"], new["BestObjectiveValue"]) == ("no gang came up", None)
    assert (old["BestObjectiveValue"], old["BilledWorkerSeconds"]) == (0.75, 10.5)
    assert least["Strategy"] == "Random"
    assert old["TrainingJobStatusCounters"]["NonRetryableError"] == 1


PRICED = {"tariff": {"per_worker_hour": 360.0, "currency": "EUR"}}
"""A worker-second costs 0.10 EUR."""


def test_a_cost_stands_beside_worker_seconds_where_there_are_prices(store: Store) -> None:
    job(store, "free", values=[0.5], age=7200)
    assert "cost" not in hpo("jobs")
    assert "BilledCost" not in hpo("jobs", "--json")
    forecast = {
        "source": "probe",
        "expected": {"worker_seconds": 5.0, "wall_seconds": 2.0},
        "error": {"worker_seconds": 0.25, "wall_seconds": -0.5},
    }
    job(store, "paid", values=[0.5, 0.75], spec={**PRICED, "max_cost": 2.5}, summary={"forecast": forecast})
    head, paid, free = hpo("jobs").splitlines()
    assert head.split() == ["job", "status", "strategy", "trials", "best", "worker-s", "cost", "age"]
    assert (paid.split()[5:8], free.split()[5:7]) == (["7", "0.70", "EUR"], ["4", "-"])
    summary, other = json.loads(hpo("jobs", "--json"))
    assert (summary["BilledCost"], summary["Currency"]) == (pytest.approx(0.7), "EUR")
    assert "BilledCost" not in other

    page = hpo("describe", "paid", columns=120)
    assert "7.0 worker-seconds, 0.70 EUR: training 5.0, idle 2.0" in page
    assert "4 at once, 2.50 EUR at most" in page
    assert "5.0 worker-seconds in 2.0 s, from the probe; " in page
    assert "measured against that: worker-seconds +25%, wall-seconds -50%" in page

    with store.writer("paid") as writer:
        writer.job(summary={"forecast": forecast, "stopped": "max_cost reached"})
    assert "from the probe; it was stopped before its end" in hpo("describe", "paid", columns=120)

    lines = hpo("trials", "paid", columns=120).splitlines()
    assert lines[0].split()[:6] == ["trial", "status", "validation:auc", "units", "worker-s", "cost"]
    assert lines[1].split()[4:7] == ["2.5", "0.25", "EUR"]
    narrow = hpo("trials", "paid", columns=80).splitlines()
    assert "0.25 EUR" in narrow[1]
    assert [trial["BilledCost"] for trial in json.loads(hpo("trials", "paid", "--json"))] == [pytest.approx(0.25)] * 2


def test_another_store_can_be_named(store: Store, tmp_path: Path) -> None:
    job(store, "here", values=[0.5])
    assert json.loads(hpo("jobs", "--json", "--store", f"sqlite:///{tmp_path}/other.db")) == []


def test_the_longest_name_fits(store: Store) -> None:
    name = "a-name-of-thirty-two-characters1"
    job(store, name, values=[123456.789], spec={"max_jobs": 10_000})
    assert "".join(line[:12].strip() for line in hpo("jobs", columns=70).splitlines()[1:]).startswith(name[:8])
    assert name in hpo("jobs", columns=100)


# ---- describe


def test_a_description_has_what_was_found_used_and_asked_for(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.75, None])
    page = hpo("describe", "bank")
    for text in (
        "bank  Completed",
        "maximize the last value of validation:auc",
        "0.75000, bank-001 after 30 units",
        "eta=0.2235, max_depth=1, booster=[b]dart[/]",
        "/models/bank-001",
        "3 of 30: 2 completed, 1 failed",
        "10.5 worker-seconds: training 7.5, idle 3.0",
        "11 to 1 -> 4 to 3 -> 2 to 10 -> 1 to 30",
        "1 to 10, whole numbers",
        "35,009 rows, 2 columns, pandas",
        "bank-002: bad [bold]luck[/bold] 2",
    ):
        assert text in page, text


def test_a_description_of_a_job_without_results(store: Store) -> None:
    job(store, "none", values=[], status="Failed", reason="no gang came up")
    page = hpo("describe", "none")
    assert "none  Failed\nno gang came up\n" in page
    assert "none: no trial has reported a finite value" in page
    assert "0 of 30" in page


def test_only_some_of_many_failures_are_described(store: Store) -> None:
    job(store, "bad", values=[None] * 9)
    page = hpo("describe", "bad")
    assert "bad-004: bad" in page
    assert "bad-005: bad" not in page
    assert "and 4 more: hpo trials bad shows them" in page


def test_a_description_for_programs(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.75])
    described = json.loads(hpo("describe", "bank", "--json"))
    assert described["BestTrainingJob"]["TrainingJobName"] == "bank-001"
    assert described["CreationTime"].endswith("+00:00")


@pytest.mark.parametrize("command", ["describe", "trials", "stop"])
def test_an_unknown_job_comes_with_the_nearest(store: Store, command: str) -> None:
    job(store, "bank-1", values=[])
    assert "no job named 'bnak-1'" in (error := hpo(command, "bnak-1", code=2))
    assert "did you mean 'bank-1'?" in error


# ---- trials


def test_trials_come_best_first_and_failed_ones_last(store: Store) -> None:
    job(store, "bank", values=[0.5, None, 0.75, float("nan")])
    lines = hpo("trials", "bank", columns=100).splitlines()
    assert lines[0].split() == ["trial", "status", "validation:auc", "units", "worker-s", "eta", "max_depth", "booster"]
    assert [line.split()[0] for line in lines[1:5]] == ["bank-002", "bank-000", "bank-003", "bank-001"]
    assert lines[1].split() == ["bank-002", "Completed", "0.75000", "30", "2.5", "0.3235", "2", "[b]dart[/]"]
    assert lines[5:] == ["", "Failed trials", "  bank-001: bad [bold]luck[/bold] 1"]
    assert "Traceback: line 7" in hpo("trials", "bank", "--tracebacks")


def test_trials_that_diverged_come_before_those_that_failed_and_are_called_that(store: Store) -> None:
    job(store, "bank", values=[None, 0.5, 0.75])
    with store.writer("bank") as writer:
        row = next(each for each in store.trials("bank") if each.number == 1)
        writer.trial(dataclasses.replace(row, status="Diverged", objective=None, failure_reason="the loss is nan"))
    lines = hpo("trials", "bank", columns=100).splitlines()
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["bank-002", "Completed", "0.75000"],
        ["bank-001", "Diverged", "-"],
        ["bank-000", "Failed", "-"],
    ]
    assert lines[5:] == [
        "Failed trials",
        "  bank-000: bad [bold]luck[/bold] 0",
        "Diverged trials",
        "  bank-001: the loss is nan",
    ]
    told = json.loads(hpo("trials", "bank", "--json"))[1]
    assert (told["TrainingJobStatus"], told["Status"], told["FailureReason"]) == (
        "Stopped",
        "Diverged",
        "the loss is nan",
    )
    assert "1 diverged" in hpo("describe", "bank")


def test_the_least_is_best_where_it_is_minimised(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.25], spec={"objective_type": "Minimize"})
    assert hpo("trials", "bank", columns=90).splitlines()[1].startswith("bank-001")


def test_where_columns_do_not_fit_heads_fold_and_then_values_have_lines_of_their_own(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.25])
    assert len(hpo("trials", "bank", columns=90).splitlines()) == 3
    folded = hpo("trials", "bank", columns=80).splitlines()
    assert [line.split() for line in folded[-2:]] == [
        line.split() for line in hpo("trials", "bank", columns=90).splitlines()[-2:]
    ]
    assert len(folded) == 4
    stacked = hpo("trials", "bank", columns=60).splitlines()
    assert stacked[1].split() == ["bank-000", "Completed", "0.50000", "30", "2.5"]
    assert stacked[2].strip() == "eta=0.1235, max_depth=0, booster=[b]dart[/]"


@pytest.mark.parametrize("columns", [120, 60])
def test_a_long_list_of_trials_takes_little_more_than_reading_them(store: Store, columns: int) -> None:
    """With a table of rich's it was 5,000 calls a trial, and 5 s for 3,000 trials."""
    made = []
    for name, trials in {"warm": 1, "few": 10, "many": 60}.items():
        job(store, name, values=[0.5] * trials)
        made.append(calls_of(lambda name=name: hpo("trials", name, columns=columns)))
    assert (made[2] - made[1]) / 50 < 2000


def test_trials_for_programs_and_spreadsheets(store: Store, tmp_path: Path) -> None:
    job(store, "bank", values=[0.5, None, 0.75])
    best, _, failed = json.loads(hpo("trials", "bank", "--json"))
    assert best["HyperParameters"] == {"eta": pytest.approx(0.323456), "max_depth": 2, "booster": "[b]dart[/]"}
    assert (failed["FailureReason"], failed["Traceback"]) == ("bad [bold]luck[/bold] 1", "Traceback: line 7")
    file = tmp_path / "trials.csv"
    assert hpo("trials", "bank", "--csv", str(file), columns=300) == f"Wrote 3 trials to {file}\n"
    with file.open() as stream:
        assert [row["TrainingJobName"] for row in csv.DictReader(stream)] == ["bank-000", "bank-001", "bank-002"]
    assert "cannot be written" in hpo("trials", "bank", "--csv", str(tmp_path / "gone" / "x.csv"), code=2)


def test_a_job_without_trials_says_so(store: Store) -> None:
    job(store, "bank", values=[], status="InProgress", ended_at=None)
    assert hpo("trials", "bank") == "bank has no trials yet: it is InProgress.\n"


# ---- stop


def test_a_job_that_has_ended_is_left_as_it_is(store: Store) -> None:
    job(store, "bank", values=[0.5])
    assert hpo("stop", "bank") == (
        "bank is Completed\nKept: 1 trial, the best 0.50000 (bank-000); look with: hpo trials bank\n"
    )


def test_a_job_that_goes_on_stopping_is_left_to(store: Store) -> None:
    job(store, "bank", values=[0.5], status="InProgress", ended_at=None)
    said = hpo("stop", "bank", "--wait", "0.1", columns=200)
    assert said.splitlines() == [
        "Asked bank to stop; its trials end at their next report.",
        "It is still stopping after 0.1 s, and goes on to; look with: hpo describe bank",
    ]
    assert store.job("bank").status == "Stopping"


def test_a_job_that_stops_is_waited_for(store: Store) -> None:
    job(store, "bank", values=[0.5], status="InProgress", ended_at=None)

    def run() -> None:
        with store.writer("bank") as writer:
            while not writer.stop_requested:
                time.sleep(0.05)
            writer.job(status="Stopped", reason="someone asked for it", ended_at=time.time())

    driver = threading.Thread(target=run)
    driver.start()
    described = json.loads(hpo("stop", "bank", "--json"))
    driver.join()
    assert described["HyperParameterTuningJobStatus"] == "Stopped"


def test_a_job_whose_driver_is_gone_is_ended_by_the_command(store: Store) -> None:
    store.create_job(JobRow(name="lost", created_at=1.0, spec=spec()))
    silence(store, LOST_AFTER + 1.0, "lost")
    heard = store.job("lost").heard
    assert "lost  Failed" in hpo("jobs")
    assert "to go on: hpo resume lost" in hpo("describe", "lost", columns=200)
    assert "lost is Stopped: stopped after its driver had died" in hpo("stop", "lost", columns=200)
    assert (store.job("lost").status, store.job("lost").ended_at) == ("Stopped", heard)


def test_a_list_of_jobs_reads_no_trial_and_no_bill_and_asks_as_often_for_many_as_for_one(store: Store) -> None:
    asked: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        counts = []
        for number in range(3):
            job(store, f"bank-{number}", values=[0.1 * number, None, 0.7, 0.2])
            asked.clear()
            found = json.loads(hpo("jobs", "--json"))
            hpo("jobs")
            counts.append(len(asked))
            assert [
                each for each in asked if re.search("FROM (trials|ledger|reports)", each) and "GROUP BY" not in each
            ] == []
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert len(set(counts)) == 1
    assert [each["BestObjectiveValue"] for each in found] == [0.7] * 3
    for each in found:
        bills = store.ledger(each["HyperParameterTuningJobName"])
        assert each["BilledWorkerSeconds"] == pytest.approx(sum(entry.worker_seconds for entry in bills))
    for each in found:
        described = json.loads(hpo("describe", each["HyperParameterTuningJobName"], "--json"))
        for counters in ("TrainingJobStatusCounters", "ObjectiveStatusCounters"):
            assert each[counters] == described[counters]


# ---- whose it is, where it runs, what it printed


def placed(store: Store, name: str, **driver: Any) -> None:
    """A job that has ended, whose driver knew more of where it ran."""
    job(store, name, values=[0.5, None])
    with store.writer(name, driver):
        pass


def test_a_wide_terminal_shows_owners_and_places(store: Store) -> None:
    placed(store, "here", host="box", log="/logs/driver.log")
    placed(store, "there", submission_id="there", address="http://head:8265")
    store.update_job("there", owner="ada", spec={**store.job("there").spec, "tags": [{"Key": "team", "Value": "x"}]})
    head, there, here = hpo("jobs", columns=120).splitlines()
    assert head.split()[-3:] == ["owner", "runs", "on"]
    assert (there.split()[-2:], here.split()[-2:]) == (["ada", "http://head:8265"], ["-", "box"])
    assert "owner" not in hpo("jobs", columns=80)
    page = hpo("describe", "there", columns=120)
    for words in ("owner    ada", "Ray job  there on http://head:8265", "tags     team=x"):
        assert words in page
    assert "log      /logs/driver.log" in hpo("describe", "here", columns=120)
    first, second = json.loads(hpo("jobs", "--json"))
    assert (first["Owner"], first["Driver"]["address"]) == ("ada", "http://head:8265")
    assert not second["Driver"]["holds_the_lease"]


def test_logs_come_from_the_file_of_a_background_job(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "driver.log"
    file.write_text("one\ntwo\nthree\n")
    placed(store, "here", log=str(file))
    assert hpo("logs", "here") == hpo("logs", "here", "--follow") == "one\ntwo\nthree\n"
    assert hpo("logs", "here", "--tail", "2") == "two\nthree\n"
    assert hpo("logs", "here", "--tail", "0") == ""


@pytest.mark.parametrize(
    "driver",
    [
        {},
        {"log": "/nowhere/driver.log"},
        {"host": "box", "log": "/logs/driver.log"},
        {"submission_id": "said", "address": "http://127.0.0.1:9"},
    ],
    ids=["foreground", "file gone", "another machine", "cluster gone"],
)
def test_logs_that_are_not_to_be_had_from_here_come_from_the_record(store: Store, driver: dict[str, Any]) -> None:
    placed(store, "said", **driver)
    assert "the record keeps nothing of what 'said' said" in hpo("logs", "said", code=2)
    for texts in (("one", "two"), ("three [red]is[/red] the last",)):  # Two drivers, one after the other.
        with store.writer("said", driver) as writer:
            list(map(kept(writer), texts))
    said = "one\ntwo\nthree [red]is[/red] the last\n"
    assert hpo("logs", "said") == hpo("logs", "said", "--follow") == said
    assert hpo("logs", "said", "--tail", "1") == "three [red]is[/red] the last\n"


def test_a_failed_trials_worker_has_its_output_shown(store: Store, tmp_path: Path) -> None:
    job(store, "trained", values=[0.5, None])
    assert "stands in the record of failed trials alone" in hpo("logs", "trained", "--trial", "trained-000", code=2)
    said = hpo("logs", "trained", "--trial", "trained-001", code=2)
    assert "is Failed, and no worker said where its output is" in said
    assert "why it failed: hpo trials trained --tracebacks" in said
    assert "no trial 'trained-01'; did you mean 'trained-001'?" in hpo(
        "logs", "trained", "--trial", "trained-01", code=2
    )
    (tmp_path / "worker.err").write_text("loading\nboom\n")
    failed = store.trials("trained")[-1]
    with store.writer("trained") as writer:
        writer.trial(dataclasses.replace(failed, logs=f"10.0.0.7:{tmp_path}/worker.err"))
    assert hpo("logs", "trained", "--trial", "trained-001", "--tail", "1") == "boom\n"
    (tmp_path / "old").mkdir()
    (tmp_path / "worker.err").rename(tmp_path / "old" / "worker.err")  # As Ray does it some time later.
    assert hpo("logs", "trained", "--trial", "trained-001", "--tail", "1") == "boom\n"
    (tmp_path / "old" / "worker.err").unlink()
    assert "worker.err on 10.0.0.7; look there" in hpo("logs", "trained", "--trial", "trained-001", code=2)


@pytest.mark.parametrize(
    "tags", [["team"], "team", {"team": 1}, [{"Key": "team"}], [{"key": "team", "value": "x"}], {"": "x"}, [3]]
)
def test_tags_that_are_none_are_refused_before_a_job_begins(tags: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^tags hold .*; give texts by name, such as \{'team': 'churn'\}"):
        make(workers=0, tags=tags)
    with pytest.raises(ConfigurationError, match="tags have the key 'a' 2 times"):
        make(workers=0, tags=[{"Key": "a", "Value": "x"}, {"Key": "a", "Value": "y"}])


def test_tags_may_be_given_by_name_or_as_sagemaker_has_them(store: Store) -> None:
    by_name = make(workers=0, tags={"team": "churn"})
    assert by_name.tags == make(workers=0, tags=[{"Key": "team", "Value": "churn"}]).tags
    store.create_job(JobRow(name="tagged", created_at=1.0, spec=by_name.settings.to_json({}, 1)))
    assert json.loads(hpo("describe", "tagged", "--json"))["Summary"]["tags"] == {"team": "churn"}
    assert HyperparameterTuner.attach("tagged").tags == by_name.tags


def test_a_job_with_tags_of_an_older_version_that_are_none_hides_no_other(store: Store) -> None:
    job(store, "other", values=[0.5])
    job(store, "old", values=[0.5], spec={"tags": ["team"]})
    assert {each["HyperParameterTuningJobName"] for each in json.loads(hpo("jobs", "--json"))} == {"other", "old"}
    assert "tags     team=" in hpo("describe", "old")
    assert HyperparameterTuner.attach("old").tags == [{"Key": "team", "Value": ""}]


def test_a_trial_without_workers_has_no_workers_output(store: Store) -> None:
    job(store, "here", values=[0.5, None])
    estimator = {**store.job("here").spec["estimator"], "scaling": {"num_workers": 0}}
    store.update_job("here", spec={**store.job("here").spec, "estimator": estimator})
    said = {number: hpo("logs", "here", "--trial", f"here-00{number}", code=2) for number in (0, 1)}
    assert "is Completed, and had no worker: its job trains in its own process" in said[0]
    assert "is Failed, and had no worker: its job trains in its own process" in said[1]
    assert said[1].rstrip().endswith("look at: hpo trials here --tracebacks")


# ---- deleting


def test_where_nobody_can_be_asked_nothing_is_deleted_without_yes(store: Store, tmp_path: Path) -> None:
    (tmp_path / "models" / "stays").mkdir(parents=True)
    placed(store, "stays")
    store.update_job("stays", spec={**store.job("stays").spec, "storage_path": str(tmp_path / "models")})
    for options in ([], ["--keep-files"]):
        said = hpo("delete", "stays", *options, code=2, columns=300)
        assert "stays is not deleted: nobody can be asked here, as this is no terminal; to delete the record of" in said
        assert said.rstrip().endswith(" ".join(["hpo delete stays --yes", *options]))
        assert [each.name for each in store.jobs()] == ["stays"]
        assert (tmp_path / "models" / "stays").is_dir()


def test_deleting_takes_the_record_and_the_files(store: Store, tmp_path: Path) -> None:
    for name in ("gone", "kept", "other"):
        (tmp_path / "models" / name / "inputs").mkdir(parents=True)
        (tmp_path / "models" / name / "inputs" / "train.parquet").write_text("x")
        (tmp_path / f"{name}.log").write_text("x")
        placed(store, name, log=str(tmp_path / f"{name}.log"))
        store.update_job(name, spec={**store.job(name).spec, "storage_path": str(tmp_path / "models")})
    said = hpo("delete", "gone", "--yes", columns=300)
    assert said == f"Deleted gone: the record of 2 trials, and its files in {tmp_path}/models/gone\n"
    assert "Kept its files in" in hpo("delete", "kept", "--keep-files", "--yes", columns=300)
    assert [each.name for each in store.jobs()] == ["other"]
    assert store.trials("other")
    assert sorted(each.name for each in (tmp_path / "models").iterdir()) == ["kept", "other"]
    assert sorted(each.name for each in tmp_path.glob("*.log")) == ["kept.log", "other.log"]


def test_a_job_that_runs_is_not_deleted(store: Store) -> None:
    store.create_job(JobRow(name="starting", created_at=time.time(), spec=spec()))
    assert "is InProgress, and cannot be deleted; first run: hpo stop starting" in hpo("delete", "starting", code=2)
    job(store, "closing", values=[0.5])
    with store.writer("closing"):
        assert "cannot be deleted" in hpo("delete", "closing", "--yes", code=2)
    assert len(store.jobs()) == 2


@pytest.mark.process
def test_a_job_that_goes_on_elsewhere_while_the_question_waits_keeps_its_files(store: Store, tmp_path: Path) -> None:
    placed(store, "gone", log=str(tmp_path / "gone.log"))
    store.update_job("gone", spec={**store.job("gone").spec, "storage_path": str(tmp_path)})
    for file in (tmp_path / "gone.log", tmp_path / "gone" / "model"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    command = [sys.executable, "-m", "hpo", "delete", "gone"]
    with terminal_of(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.read_until("[y/N]", 60.0)
        with store.writer("gone"):
            terminal.press(b"y\n")
            terminal.read_until(None, 60.0)
    assert terminal.process.wait(60) == 2
    assert f"'gone' cannot be deleted: process {os.getpid()}" in " ".join(terminal.seen.split())
    assert (tmp_path / "gone.log").exists()
    assert (tmp_path / "gone" / "model").exists()
    assert store.trials("gone")


def test_files_on_another_machine_stay_and_are_named(store: Store) -> None:
    placed(store, "away", host="box")
    store.update_job("away", spec={**store.job("away").spec, "storage_path": "/models"})
    assert "models in /models/away on box, which stay there" in hpo("delete", "away", "--yes", columns=200)


# ---- files and completion


def test_init_writes_a_job_and_never_over_another(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    assert "Run it with: hpo tune" in hpo("init", str(file), columns=200)
    written = file.read_text()
    assert HyperparameterTuner(**read_job(file).arguments()).plan().trials == 20
    file.write_text("mine")
    assert "is there already; give another name, or --force" in hpo("init", str(file), code=2)
    assert file.read_text() == "mine"
    hpo("init", str(file), "--force", columns=200)
    assert file.read_text() == written
    assert "cannot be written" in hpo("init", str(tmp_path / "gone" / "job.yaml"), code=2)


def test_what_init_leaves_out_has_the_value_that_it_says(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    hpo("init", str(file), columns=200)
    lines = file.read_text().splitlines()
    for key in ("use_gpu", "objective_type", "max_runtime_in_seconds", "storage_path", "store"):
        said = next(line.strip() for line in lines if line.strip().startswith(f"# {key}: "))
        value = yaml_text.load(said.removeprefix("# "))[key]
        fields = {name: info for model in models(JobSpec) for name, info in model.model_fields.items()}
        assert fields[key].default == value


def models(model: Any) -> list[Any]:
    options = [o for info in model.model_fields.values() for o in (info.annotation, *get_args(info.annotation))]
    inner = [option for option in options if hasattr(option, "model_fields")]
    return [model, *(each for one in inner for each in models(one))]


def test_the_schema_takes_good_jobs_and_refuses_bad_ones(tmp_path: Path) -> None:
    schema = json.loads(hpo("schema"))
    assert schema == json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    file = tmp_path / "job.yaml"
    hpo("init", str(file), columns=200)
    validator = jsonschema.Draft202012Validator(schema)
    for good in (file, BANK):
        assert not list(validator.iter_errors(yaml_text.load(good.read_text())))
    bad = yaml_text.load(BANK.read_text())
    bad["tuning"]["max_job"] = 3
    bad["trainer"]["num_workers"] = -1
    assert len(list(validator.iter_errors(bad))) == 2
    for definition in schema["$defs"].values():
        for name, field in definition["properties"].items():
            assert field["description"], name


def test_a_shell_completes_names_of_jobs_and_datasets(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    job(store, "bank-1", values=[])
    job(store, "other", values=[])

    def complete(words: str) -> list[str]:
        environment = {"_HPO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        return CliRunner(env=environment).invoke(app, [], prog_name="hpo").output.split()

    assert complete("hpo describe b") == ["bank-1"]
    assert complete("hpo trials o") == ["other"]
    assert complete("hpo stop zz") == []
    assert complete("hpo data fetch bank-marketing-") == ["bank-marketing-synthetic"]
    assert complete("hpo desc") == ["describe"]
    monkeypatch.setenv("WARMBAND_STORE", "sqlite:////no/such/folder/x.db")
    assert complete("hpo describe b") == []


def test_the_reference_is_as_the_code_says() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference(), "docs/cli.md is out of date: run `make docs`"
    page = (ROOT / "docs" / "reference" / "tuner.md").read_text()
    assert page.partition(OPTIONS)[2] == options_table(), "docs/reference/tuner.md is out of date: run `make docs`"


# ---- how things are said


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (3600, "1 h"), (86400 * 2.5, "2 d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert ago(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.5, "0.50000"), (-123.5678, "-123.56780"), (1e9, "1e+09")])
def test_values(value: float | None, text: str) -> None:
    assert value_text(value) == text
