"""Several jobs side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hpo.report import JobData, Measured, Table, comparison_page
from hpo.report.pictures.figure import Figure
from tests.support.records import made_up
from tests.support.refusals import mentions


def job(name: str, error: float | None = 0.01, **spec: Any) -> JobData:
    data = made_up(name=name, trials=10, seed=len(name))
    changed = replace(data.job, spec={**data.job.spec, **spec}, summary={"best": {"standard_error": error}})
    return replace(data, job=changed)


def tables(*jobs: JobData) -> list[Table]:
    page = comparison_page(jobs)
    return [block for section in page.sections for block in section.blocks if isinstance(block, Table)]


def best(data: JobData) -> float:
    assert data.best is not None
    value = data.objective(data.best)
    assert value is not None
    return value


def inputs(fingerprint: str) -> dict[str, Any]:
    return {"train": {"rows": 5, "fingerprint": "a"}, "validation": {"rows": 3, "fingerprint": fingerprint}}


def test_each_job_has_a_row_with_its_own_figures() -> None:
    jobs = [job("one"), job("another", error=None)]
    assert jobs[0].untuned is not None
    rows = tables(*jobs)[0].rows
    assert [row[0] for row in rows] == ["one", "another"]
    assert rows[0][2:4] == [Measured(best(jobs[0]), 0.01), jobs[0].objective(jobs[0].untuned)]
    assert rows[1][2] == Measured(best(jobs[1]), None)
    assert rows[1][6] == sum(jobs[1].billed.values())


def test_a_difference_has_the_error_of_both_scores() -> None:
    jobs = [job("one", 0.03), job("another", 0.04)]
    ((name, change, *_),) = tables(*jobs)[1].rows
    assert name == "another"
    assert isinstance(change, Measured)
    assert change.value == pytest.approx(best(jobs[1]) - best(jobs[0]))
    assert change.error == pytest.approx(0.05)
    ((_, unknown, *_),) = tables(job("one", 0.03), job("another", None))[1].rows
    assert isinstance(unknown, Measured)
    assert unknown.error is None


def test_jobs_after_different_things_have_no_difference_and_columns_of_their_own() -> None:
    other = job("another", objective_metric_name="validation:logloss")
    page = comparison_page([job("one"), other])
    mentions(page.verdict, "validation:auc", "validation:logloss")
    results, differences = tables(job("one"), other)[:2]
    assert differences.rows[0][1] is None
    assert results.rows[0][4:6] == [None, None]
    assert results.rows[1][2:4] == [None, None]


@pytest.mark.parametrize(
    ("prints", "said"),
    [(("x", "x"), ("same", "rows")), (("x", "y"), ("different", "rows")), (("x", ""), ())],
)
def test_whether_scores_are_of_the_same_rows_is_said(prints: tuple[str, str], said: tuple[str, ...]) -> None:
    jobs = [job(name, inputs=inputs(found)) for name, found in zip(("one", "another"), prints, strict=True)]
    note = comparison_page(jobs).sections[0].note
    mentions(note, *said)
    assert bool(said) is bool(note)


def test_pictures_compare_what_was_found_and_what_it_cost() -> None:
    page = comparison_page([job("one"), job("another")])
    assert page.title == "one and another"
    figures = [block for section in page.sections for block in section.blocks if isinstance(block, Figure)]
    assert len(figures) == 2


def test_many_jobs_have_their_number_as_a_title_and_a_page_that_can_be_written() -> None:
    page = comparison_page([job("one"), job("two-2"), job("three33"), replace(job("none"), trials=(), untuned=None)])
    assert page.title == "4 tuning jobs"
    assert "three33" in page.html()
