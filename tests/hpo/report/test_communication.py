"""Communication and profiles on a job's page, and in a line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpo.report.page.sections import job_sections
from hpo.report.pictures.workers import communication, shares
from hpo.text import communication_share, details_text
from tests.support.records import made_up
from tests.support.refusals import mentions


def measured(workers: int, share: float) -> dict:
    ranks = [str(rank) for rank in range(workers)]
    return {
        "steps": dict.fromkeys(ranks, 40),
        "bytes": dict.fromkeys(ranks, 2_500_000),
        "step_seconds": dict.fromkeys(ranks, 4.0),
        "waiting_seconds": {rank: 4.0 * share * 2 * (rank == "0") * workers / 2 for rank in ranks},
    }


PROFILE = {
    "trace": "s3://KEY:SECRET@bucket/job/job-003/profile.json.gz",
    "steps": 10,
    "step_seconds": 2.0,
    "waiting_seconds": 0.5,
    "operator_seconds": {"aten::addmm": 1.0, "gloo:all_reduce": 0.75},
    "collectives": ["gloo:all_reduce"],
}


@pytest.fixture(scope="module")
def data():
    plain = made_up()
    trials = [
        replace(trial, details={"communication": measured(2 + 2 * (trial.number % 2), 0.25 + 0.5 * (trial.number % 2))})
        for trial in plain.trials
    ]
    trials[3] = replace(trials[3], details={**trials[3].details, "profile": PROFILE})
    return replace(plain, trials=tuple(trials))


def section(data):
    return next(part for part in job_sections(data) if part.title == "Communication")


def test_shares_are_told_by_workers_and_trial(data):
    found = shares(data)
    assert list(found) == [2, 4]
    assert {share for of in found.values() for share in of.values()} == {0.25, 0.75}
    figure = communication(data)
    mentions(figure.title, 4, "75%")
    assert [trace.name for trace in figure.interactive.data] == ["2 workers", "4 workers"]
    (axes,) = figure.still().axes
    assert len(axes.patches) == len(data.trials)


def test_the_page_has_the_best_trial_by_worker(data):
    [_, table, *_] = section(data).blocks
    ranks = len(data.best.details["communication"]["steps"])
    assert [row[0] for row in table.rows] == [f"worker {rank}" for rank in range(ranks)]
    waited = 4.0 * data.best.details["communication"]["waiting_seconds"]["0"] / 4.0
    assert table.rows[0][1:] == [40, "2.5 MB", 4.0 - waited, waited, 100 * waited / 4.0]
    mentions(table.caption, data.best.trial_id)


def test_the_page_has_the_operators_of_a_profile(data):
    table = section(data).blocks[-1]
    whole, waiting, *operators = table.rows
    assert whole[1:] == [2.0, 100.0, None]
    mentions(waiting[0], "waiting", "workers")
    assert waiting[1:] == [0.5, 25.0, None]
    assert operators == [["aten::addmm", 1.0, 50.0, None], ["gloo:all_reduce", 0.75, 37.5, "communication"]]
    assert "SECRET" not in table.caption
    assert "bucket/job/job-003/profile.json.gz" in table.caption


def test_without_several_workers_there_is_nothing_of_it():
    assert communication(made_up()) is None
    assert "Communication" not in [part.title for part in job_sections(made_up())]


def test_a_line_tells_the_share_and_the_bytes():
    details = {"communication": measured(2, 0.25)}
    mentions(details_text(details), "communication", "25.0%", "2.5 MB")
    both = details_text({**details, "profile": PROFILE, "units_by_workers": {"2": 9}})
    mentions(both, "25.0%", "bucket/job/job-003/profile.json.gz", "units_by_workers", "2 9")
    assert "SECRET" not in both
    long = {"staleness": {str(number): 1 for number in range(40)}}
    assert details_text({**details, **long}) == details_text(details)
    assert details_text({}) == details_text({"communication": {}}) == ""


def test_without_steps_there_is_no_share():
    assert communication_share({}) is None
    assert communication_share({"step_seconds": {"0": 0.0}, "waiting_seconds": {"0": 0.0}}) is None
