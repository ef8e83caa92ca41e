"""What a person does in the console, on a real server and with real jobs, and what of it stands in the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from hpo.record import Store
from tests.support.small_job import write_job

pytestmark = pytest.mark.system

Visit = Callable[..., Page]


def job_text(folder: Path, name: str, *, rounds: int = 4, trials: int = 2) -> str:
    """The file of a job that trains in its driver's own process."""
    text = write_job(folder).read_text().replace("name: tiny", f"name: {name}")
    text = text.replace("max_resource: 4", f"max_resource: {rounds}, min_resource: {rounds}")
    return text.replace("max_jobs: 2", f"max_jobs: {trials}").replace(
        "type: xgboost", "type: xgboost\n  num_workers: 0"
    )


def started(page: Page, text: str) -> None:
    """Checks a job file that is pasted, and starts it."""
    page.get_by_role("textbox", name="The job file").fill(text)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("The file is right")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()


def done(store: Store, job: str) -> list[tuple[str, str]]:
    """What was done with a job, and by whom."""
    return [(act.kind, act.by) for act in store.acts(job)]


def test_a_job_is_made_cloned_and_deleted(visit: Visit, record: Store, tmp_path: Path) -> None:
    page = visit("#/new")
    started(page, job_text(tmp_path, "made"))
    title = page.get_by_role("heading", level=1)
    expect(title).to_contain_text("made")
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Completed")
    assert "person" in {by for _, by in done(record, "made")}

    page.get_by_role("link", name="Clone").click()
    expect(title).to_have_text("Clone of made")
    page.locator('[data-field="tuning.ranges.eta.max"] input').fill("0.5")
    page.locator("details:has([data-field=name]) > summary").first.click()
    page.locator('[data-field="name"] input').fill("copied")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("The file is right")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(title).to_contain_text("copied")
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Completed")
    assert record.job("copied").spec["hyperparameter_ranges"]["eta"]["max_value"] == 0.5
    assert record.job("copied").spec["max_jobs"] == 2

    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete copied?")
    expect(dialog.get_by_role("button", name="Delete for good")).to_be_disabled()
    dialog.get_by_role("textbox").fill("copied")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(title).to_have_text("Jobs")
    assert "copied" not in [job.name for job in record.jobs()]


def test_a_job_under_way_takes_a_trial_is_stopped_and_goes_on(visit: Visit, record: Store, tmp_path: Path) -> None:
    page = visit("#/new")
    started(page, job_text(tmp_path, "long", rounds=20_000, trials=3))
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "InProgress")
    page.get_by_role("button", name="Add a trial").click()
    dialog = page.get_by_role("dialog", name="Add a trial")
    dialog.get_by_label("eta").fill("7")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("eta")
    dialog.get_by_label("eta").fill("0.25")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_text("It is noted")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the job").click()
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Stopped")
    kinds = [kind for kind, by in done(record, "long") if by == "person"]
    assert {"trial_added", "stopped"} <= set(kinds)


def test_a_wrong_file_is_told_at_its_fields(visit: Visit, tmp_path: Path) -> None:
    page = visit("#/new", width=390)
    page.get_by_role("textbox", name="The job file").fill(
        '{"trainer": {"type": "xgboost"}, "tuning": {"objective_metric_name": "train:auc", "max_jobs": 0}}'
    )
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator('[data-field="tuning.max_jobs"] .problem')).to_contain_text("max_jobs")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
