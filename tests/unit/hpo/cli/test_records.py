"""Commands that read the record or stop a job, on a record filled by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.lines import line_with
from tests.support.listed import hpo, job
from tests.support.refusals import mentions


def test_an_empty_store_is_one_line_that_helps(store: Store) -> None:
    [said] = hpo("jobs", columns=300).splitlines()
    mentions(said, store.url, "hpo init", "hpo tune job.yaml")
    assert json.loads(hpo("jobs", "--json")) == []


def test_another_store_can_be_named(store: Store, tmp_path: Path) -> None:
    job(store, "here", values=[0.5])
    assert json.loads(hpo("jobs", "--json", "--store", f"sqlite:///{tmp_path}/other.db")) == []


def test_the_longest_name_fits(store: Store) -> None:
    name = "a-name-of-thirty-two-characters1"
    job(store, name, values=[123456.789], spec={"max_jobs": 10_000})
    assert "".join(line[:12].strip() for line in hpo("jobs", columns=70).splitlines()[1:]).startswith(name[:8])
    assert name in hpo("jobs", columns=100)


def test_a_description_has_what_was_found_used_and_asked_for(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.75, None])
    page = hpo("describe", "bank")
    for names in (
        ("bank", "Completed"),
        ("objective", "maximize", "last", "validation:auc"),
        ("best", "0.75000", "bank-001", 30),
        ("eta=0.2235, max_depth=1, booster=[b]dart[/]",),
        ("model", "/models/bank-001"),
        ("trials", 3, 30, "2 completed", "1 failed"),
        ("billed", "10.5", "training 7.5", "idle 3.0"),
        (12, 1, 4, 3, 10, 30),
        ("max_depth", 1, 10),
        ("35,009", 2, "pandas"),
        ("bank-002", "bad [bold]luck[/bold] 2"),
    ):
        line_with(page, *names)


def test_a_description_of_a_job_without_results(store: Store) -> None:
    job(store, "none", values=[], status="Failed", reason="no gang came up")
    page = hpo("describe", "none")
    mentions(page.splitlines()[0], "none", "Failed")
    assert page.splitlines()[1] == "no gang came up"
    line_with(page, "best", "finite")
    line_with(page, "trials", 0, 30)


def test_only_some_of_many_failures_are_described(store: Store) -> None:
    job(store, "bad", values=[None] * 9)
    page = hpo("describe", "bad")
    mentions(page, "bad-004")
    assert "bad-005" not in page
    line_with(page, 4, "hpo trials bad")


def test_a_description_for_programs(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.75])
    described = json.loads(hpo("describe", "bank", "--json"))
    assert described["BestTrainingJob"]["TrainingJobName"] == "bank-001"
    assert described["CreationTime"].endswith("+00:00")


@pytest.mark.parametrize("command", ["describe", "trials", "stop"])
def test_an_unknown_job_comes_with_the_nearest(store: Store, command: str) -> None:
    job(store, "bank-1", values=[])
    mentions(hpo(command, "bnak-1", code=2), "bnak-1", "bank-1")


def test_trials_come_best_first_and_failed_ones_last(store: Store) -> None:
    job(store, "bank", values=[0.5, None, 0.75, float("nan")])
    lines = hpo("trials", "bank", columns=100).splitlines()
    assert lines[0].split() == ["trial", "status", "validation:auc", "units", "worker-s", "eta", "max_depth", "booster"]
    assert [line.split()[0] for line in lines[1:5]] == ["bank-002", "bank-000", "bank-003", "bank-001"]
    assert lines[1].split() == ["bank-002", "Completed", "0.75000", "30", "2.5", "0.3235", "2", "[b]dart[/]"]
    blank, heading, reason = lines[5:]
    assert not blank
    mentions(heading, "Failed")
    mentions(reason, "bank-001", "bad [bold]luck[/bold] 1")
    assert "Traceback: line 7" in hpo("trials", "bank", "--tracebacks")


def test_the_least_is_best_where_it_is_minimised(store: Store) -> None:
    job(store, "bank", values=[0.5, 0.25], spec={"objective_type": "Minimize"})
    assert hpo("trials", "bank", columns=90).splitlines()[1].startswith("bank-001")


def test_a_job_without_trials_says_so(store: Store) -> None:
    job(store, "bank", values=[], status="InProgress", ended_at=None)
    [said] = hpo("trials", "bank").splitlines()
    mentions(said, "bank", "trials", "InProgress")


def test_a_job_that_has_ended_is_left_as_it_is(store: Store) -> None:
    job(store, "bank", values=[0.5])
    state, kept = hpo("stop", "bank", columns=200).splitlines()
    mentions(state, "bank", "Completed")
    mentions(kept, 1, "0.50000", "bank-000", "hpo trials bank")


def test_a_job_that_goes_on_stopping_is_left_to(store: Store) -> None:
    job(store, "bank", values=[0.5], status="InProgress", ended_at=None)
    said = hpo("stop", "bank", "--wait", "0.1", columns=200)
    asked, goes_on = said.splitlines()
    mentions(asked, "bank")
    mentions(goes_on, "0.1 s", "hpo describe bank")
    assert store.job("bank").status == "Stopping"
