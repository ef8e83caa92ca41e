"""What a person does in the console, on a real server and with real jobs, and what of it stands in the record."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from playwright.sync_api import expect

from hpo.job_file import example_file
from hpo.record import Store
from hpo.serve import Tokens
from tests.support.console import Served
from tests.support.hpo.serve.console.acts import Visit, done, job_text, started


def test_a_job_under_way_takes_a_trial_is_stopped_and_goes_on(visit: Visit, record: Store, tmp_path: Path) -> None:
    page = visit("#/new")
    started(page, job_text(tmp_path, "long", rounds=100_000, trials=3))
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "InProgress")
    page.get_by_role("button", name="Add a trial").click()
    dialog = page.get_by_role("dialog", name="Add a trial")
    dialog.get_by_label("eta").fill("7")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("eta")
    dialog.get_by_label("eta").fill("0.25")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.locator("p.good")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()

    gangs = page.locator("section[aria-label=Gangs]")
    expect(gangs.get_by_role("status")).to_have_text("1 up")
    row = gangs.locator("tbody tr")
    expect(row.locator("[data-does=serves] a")).to_be_visible()
    expect(row).to_contain_text(socket.gethostname())
    stopped = row.locator("[data-does=serves] a").inner_text()
    row.locator("[data-does=serves] a").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(stopped)
    page.get_by_role("button", name="Stop this trial").click()
    page.get_by_role("button", name="Stop the trial").click()
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Stopped")
    page.get_by_role("link", name="← long").click()
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "InProgress")
    expect(row.locator("[data-does=serves] a")).not_to_have_text(stopped)  # The job goes on with another.

    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the job").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("h1 .chip")).to_have_attribute("data-status", "Stopped")
    kinds = [kind for kind, by in done(record, "long") if by == "person"]
    assert {"trial_added", "trial_stopped", "stopped"} <= set(kinds)
    expect(gangs.get_by_role("status")).to_have_text("1 released")


def test_a_token_that_may_look_finds_every_act_refused(visit: Visit, record: Store, served: Served) -> None:
    token = Tokens(served.folder / "tokens.json").add("looker", "look")
    before = record.acts("sixty")
    page = visit("#/jobs/sixty", token=token)
    expect(page.locator("#who")).to_have_text(re.compile(r"\blooker\b.*\blook\b"))
    for place, count in (("#/jobs/sixty", 5), ("#/jobs/sixty/trials/sixty-003", 1)):
        page.goto(f"{served.base}/{place}")
        acts = page.get_by_role("group", name="Acts").get_by_role("button")
        expect(acts).to_have_count(count)
        for button in acts.all():
            expect(button).to_have_attribute("aria-disabled", "true")
            expect(button).to_have_attribute("title", re.compile(r"\btoken\b.*\bact\b"))
            button.click(force=True)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto(f"{served.base}/#/jobs")
    expect(page.get_by_role("button", name="New job")).to_have_attribute("aria-disabled", "true")
    page.goto(f"{served.base}/#/new")
    expect(page.locator(".newjob > .problem")).to_have_text(re.compile(r"\btoken\b.*\bact\b"))
    for name in ("Check", "Start"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    acting = """async ([method, path]) => {
        const { csrf } = await (await fetch("/api/session")).json();
        const sent = { method, headers: { "X-CSRF-Token": csrf } };
        return (await fetch(`/api${path}`, method === "POST" ? { ...sent, body: "{}" } : sent)).status;
    }"""
    posts = ("stop", "resume", "trials", "trials/sixty-003/stop", "deploy")
    asked = [("POST", "/jobs"), *(("POST", f"/jobs/sixty/{act}") for act in posts), ("DELETE", "/jobs/sixty")]
    assert {tuple(each): page.evaluate(acting, list(each)) for each in asked} == dict.fromkeys(asked, 403)
    assert record.acts("sixty") == before


def test_a_wrong_file_is_told_at_its_fields(visit: Visit, tmp_path: Path) -> None:
    page = visit("#/new", width=390)
    page.get_by_role("textbox", name="The job file").fill(
        '{"trainer": {"type": "xgboost"}, "tuning": {"objective_metric_name": "train:auc", "max_jobs": 0}}'
    )
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator('[data-field="tuning.max_jobs"] .problem')).to_contain_text("max_jobs")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_new_job_begins_with_the_example_as_yaml_whose_comments_stay(visit: Visit, tmp_path: Path) -> None:
    page = visit("#/new")
    text = page.get_by_role("textbox", name="The job file")
    expect(text).to_have_value(example_file())
    for name in ("data.dataset", "trainer.num_workers", "tuning.max_jobs", "tuning.ranges.eta.min"):
        expect(page.locator(f'[data-field="{name}"] input')).to_be_visible()
    page.locator('[data-field="tuning.max_jobs"] input').fill("4")
    page.locator('[data-field="tuning.ranges.eta.min"] input').fill("0.02")
    expect(text).to_have_value(re.compile(r"max_jobs: 4 +# trials in all"))
    expect(text).to_have_value(re.compile(r"eta: \{type: continuous, min: 0.02, max: 1, scaling: Logarithmic\}"))

    text.fill(job_text(tmp_path, "gone").replace("train.csv", "gone.csv"))
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".footer .problem")).to_contain_text("gone.csv")
    text.fill("trainer: [1")
    expect(page.get_by_role("status").filter(has_text="line 1")).to_be_visible()
    text.fill(job_text(tmp_path, "right"))
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator(".footer pre")).to_contain_text("trials at each rung")
