"""Communication and profiles on a job's page, and in a line."""

from __future__ import annotations

from hpo.report.page.sections import job_sections
from hpo.report.pictures.workers import communication
from tests.support.hpo.report.communication import data  # noqa: F401  # Fixtures.
from tests.support.records import made_up
from tests.support.refusals import mentions


def section(data):
    return next(part for part in job_sections(data) if part.title == "Communication")


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
