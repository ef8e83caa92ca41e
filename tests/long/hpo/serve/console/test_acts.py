"""What a person does in the console, on a real server and with real jobs, and what of it stands in the record."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from hpo.record import Store
from tests.support.hpo.serve.console.acts import Visit, done, job_text, started
from tests.support.refusals import mentions


def test_a_job_is_made_cloned_and_deleted(visit: Visit, record: Store, tmp_path: Path) -> None:
    page = visit("#/new")
    started(page, job_text(tmp_path, "made"))
    title = page.get_by_role("heading", level=1)
    expect(title).to_contain_text("made")
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Completed")
    assert "person" in {by for _, by in done(record, "made")}
    forecast = record.job("made").summary["forecast"]["expected"]["worker_seconds"]
    told = page.locator("section[aria-label=Bill] canvas[role=img]").get_attribute("aria-label") or ""
    mentions(told, f"{forecast:.4g} worker-s")

    page.get_by_role("link", name="Clone").click()
    expect(title).to_have_text("Clone of made")
    page.locator('[data-field="tuning.ranges.eta.max"] input').fill("0.5")
    page.locator("details:has([data-field=name]) > summary").first.click()
    page.locator('[data-field="name"] input').fill("copied")
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".newjob .footer .good")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(title).to_contain_text("copied")
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Completed")
    assert record.job("copied").spec["hyperparameter_ranges"]["eta"]["max_value"] == 0.5
    assert record.job("copied").spec["max_jobs"] == 2

    page.get_by_role("button", name="Resume", exact=True).click()
    dialog = page.get_by_role("dialog", name="Resume copied?")
    expect(dialog.get_by_label("max_jobs")).to_have_attribute("placeholder", "2")
    dialog.get_by_label("max_jobs").fill("4")
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog).to_have_count(0)
    trials = page.get_by_role("table", name="Trials").locator(".rows a")
    expect(trials).to_have_count(4)
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Completed")
    assert [act.arguments["max_jobs"] for act in record.acts("copied") if act.kind == "raised"] == [[2, 4]]
    assert {("raised", "person"), ("resumed", "person")} <= set(done(record, "copied"))
    expect(page.locator("section[aria-label=Acts]")).to_contain_text("person raised")

    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete copied?")
    expect(dialog.get_by_role("button", name="Delete for good")).to_be_disabled()
    dialog.get_by_role("textbox").fill("copied")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(title).to_have_text("Jobs")
    assert "copied" not in [job.name for job in record.jobs()]
