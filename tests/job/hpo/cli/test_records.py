"""Commands that read the record or stop a job, on a record filled by hand."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record.store import JobRow, Store
from hpo.record.tables import LOST_AFTER
from tests.support.calls import calls_of
from tests.support.lines import line_with
from tests.support.listed import hpo, job, spec, with_untuned
from tests.support.refusals import mentions
from tests.support.rows import silence


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


def test_an_untuned_run_that_is_better_is_the_result(store: Store) -> None:
    with_untuned(store, "worse", 0.8)
    with_untuned(store, "better", 0.745)
    page = hpo("describe", "worse", columns=120)
    mentions(line_with(page, "best", "0.80000"), "the un-tuned run")
    mentions(line_with(page, "best trial"), "worse-001", "0.75000")
    mentions(line_with(page, "tuning"), "nothing better", "0.0500", 5.0)
    page = hpo("describe", "better", columns=120)
    mentions(line_with(page, "best", "0.75000"), "better-001")
    mentions(line_with(page, "tuning"), "no difference", "0.0050", "0.0100")
    found = {each["HyperParameterTuningJobName"]: each for each in json.loads(hpo("jobs", "--json"))}
    assert {name: each["BestObjectiveValue"] for name, each in found.items()} == {"worse": 0.8, "better": 0.75}
    assert json.loads(hpo("describe", "worse", "--json"))["Gain"]["outcome"] == "worse"


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
    line_with(page, "7.0", "0.70 EUR", "training 5.0", "idle 2.0")
    line_with(page, 4, "2.50 EUR")
    mentions(page, "5.0 worker-seconds", "2.0 s", "probe", "worker-seconds +25%", "wall-seconds -50%")

    with store.writer("paid") as writer:
        writer.job(summary={"forecast": forecast, "stopped": "max_cost reached"})
    page = hpo("describe", "paid", columns=120)
    mentions(page, "5.0 worker-seconds", "2.0 s", "probe", "stopped")
    assert "+25%" not in page

    lines = hpo("trials", "paid", columns=120).splitlines()
    assert lines[0].split()[:6] == ["trial", "status", "validation:auc", "units", "worker-s", "cost"]
    assert lines[1].split()[4:7] == ["2.5", "0.25", "EUR"]
    narrow = hpo("trials", "paid", columns=80).splitlines()
    assert "0.25 EUR" in narrow[1]
    assert [trial["BilledCost"] for trial in json.loads(hpo("trials", "paid", "--json"))] == [pytest.approx(0.25)] * 2


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
    heading, reason, other_heading, other_reason = lines[5:]
    mentions(heading, "Failed")
    mentions(reason, "bank-000", "bad [bold]luck[/bold] 0")
    mentions(other_heading, "Diverged")
    mentions(other_reason, "bank-001", "the loss is nan")
    told = json.loads(hpo("trials", "bank", "--json"))[1]
    assert (told["TrainingJobStatus"], told["Status"], told["FailureReason"]) == (
        "Stopped",
        "Diverged",
        "the loss is nan",
    )
    line_with(hpo("describe", "bank"), "trials", "1 diverged")


def test_a_mean_of_repeats_has_its_standard_error(store: Store) -> None:
    job(store, "bank", values=[0.7, 0.9, 0.5, 0.5, None, 0.6, 0.4], spec={"repeats": 2})
    head, *rows = hpo("trials", "bank", columns=200).splitlines()
    assert "mean of 2" in head
    first, third, fifth = (next(row for row in rows if row.startswith(f"bank-{number:03d}")) for number in (1, 2, 6))
    assert " 0.90000  0.80000 \u00b1 0.10000 " in first
    assert " 0.50000  0.50000 \u00b1 0.00000 " in third
    assert "\u00b1" not in fifth, "its second trial is still to come"
    means = [
        (each["MeanObjectiveValue"], each["MeanObjectiveStandardError"])
        for each in json.loads(hpo("trials", "bank", "--json"))
    ]
    error = pytest.approx(0.1)
    assert means == [(pytest.approx(0.8), error)] * 2 + [(0.5, 0.0)] * 2 + [(None, None)] * 3
    job(store, "once", values=[0.7])
    assert "MeanObjectiveStandardError" not in hpo("trials", "once", "--json", columns=500)


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
    mentions(hpo("trials", "bank", "--csv", str(file), columns=300), 3, str(file))
    with file.open() as stream:
        assert [row["TrainingJobName"] for row in csv.DictReader(stream)] == ["bank-000", "bank-001", "bank-002"]
    gone = str(tmp_path / "gone" / "x.csv")
    mentions(hpo("trials", "bank", "--csv", gone, code=2), "--csv", gone)


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
    line_with(hpo("jobs"), "lost", "Failed")
    mentions(hpo("describe", "lost", columns=200), "hpo resume lost")
    line_with(hpo("stop", "lost", columns=200), "lost", "Stopped", "driver")
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
