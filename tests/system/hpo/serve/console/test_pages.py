"""The console as a person meets it: in a real browser, on a real server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from hpo.record import ReportRow, Store, TrialRow
from hpo.record.tables import LineRow
from tests.support.console import Served, put
from tests.support.records import HOSTILE

Visit = Callable[..., Page]


def test_the_list_is_searched_sorted_and_walked_by_keyboard(visit: Visit) -> None:
    page = visit("#/jobs")
    rows = page.get_by_role("table", name="Jobs").locator(".rows .row")
    expect(rows).to_have_count(2)
    page.get_by_role("columnheader", name="Job").get_by_role("button").click()
    expect(rows.locator("a").first).to_have_text("hostile")
    page.keyboard.press("Escape")
    page.locator("body").press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("SIXTY hyper")
    expect(rows).to_have_count(1)
    page.keyboard.press("Escape")
    rows.locator("a").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("sixty")
    page.keyboard.press("u")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_job_shows_what_its_record_has(visit: Visit, record: Store) -> None:
    page = visit("#/jobs/sixty")
    expect(page.get_by_role("heading", level=2)).to_have_text(
        ["Learning curves", "Brackets", "Trials", "Gangs", "Bill", "Staleness of gradients", "Log", "Acts"]
    )
    billed = sum(row.worker_seconds for row in record.ledger("sixty"))
    expect(page.locator("section[aria-label=Bill] tfoot")).to_contain_text(f"{billed:.4g}")
    trials = page.get_by_role("table", name="Trials")
    best = max(
        (row for row in record.trials("sixty") if row.number >= 0 and row.status not in ("Failed", "Diverged")),
        key=lambda row: row.objective or 0.0,
    )
    expect(trials.locator(".rows a").first).to_have_text(best.trial_id)
    page.get_by_role("searchbox").fill("failed")
    failed = [row.trial_id for row in record.trials("sixty") if row.status == "Failed"]
    expect(trials.locator(".rows a")).to_have_count(len(failed))
    reported = sum(bool(record.reports("sixty", row.trial_id)) for row in record.trials("sixty") if row.number >= 0)
    expect(page.locator(".chart canvas[role=img]").first).to_have_attribute(
        "aria-label", re.compile(rf"\b{reported} trials\b")
    )
    trials.locator(".rows a").first.click()
    expect(page.get_by_text("ValueError: no luck")).to_be_visible()


def test_names_with_html_come_out_as_text(visit: Visit) -> None:
    page = visit("#/jobs/hostile")
    expect(page.locator("#main > .title")).to_contain_text(HOSTILE)
    page.get_by_role("searchbox").fill("failed")
    page.get_by_role("table", name="Trials").locator(".rows a").first.click()
    expect(page.locator("p.bad")).to_have_text(f"ValueError: {HOSTILE}")
    assert page.locator("#main script, #main img").count() == 0


def test_the_best_trial_has_its_command_by_hand_with_a_button_that_copies_it(visit: Visit, record: Store) -> None:
    best = record.job("hostile").summary["best"]
    page = visit(f"#/jobs/hostile/trials/{best['trial']}")
    section = page.get_by_role("region", name="By hand")
    expect(section.locator("code")).to_have_text(best["command"], use_inner_text=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    section.get_by_role("button").click()
    expect(section.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == best["command"]
    assert page.locator("#main script, #main img").count() == 0
    other = next(row.trial_id for row in record.trials("hostile") if row.trial_id != best["trial"])
    page = visit(f"#/jobs/hostile/trials/{other}")
    expect(page.get_by_role("heading", name="Hyperparameters")).to_be_visible()
    expect(page.get_by_role("region", name="By hand")).to_have_count(0)


@pytest.mark.parametrize(
    "place", ["#/jobs", "#/jobs/sixty", "#/jobs/sixty/trials/sixty-003", "#/compare/sixty,hostile"]
)
def test_a_phone_does_not_scroll_sideways(visit: Visit, place: str) -> None:
    page = visit(place, width=390)
    page.locator("#main h1").wait_for()
    expect(page.locator("#main .row, #main td").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_chosen_colours_hold(visit: Visit) -> None:
    page = visit("#/jobs", scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.get_by_role("button", name="Colours").click()
    assert page.evaluate(colour) != dark
    page.reload()
    assert page.evaluate(colour) != dark


def test_updates_come_by_themselves_also_after_a_restart_of_the_server(
    visit: Visit, record: Store, served: Served
) -> None:
    put(record, name="runs", trials=8, ended=False)
    page = visit("#/jobs/runs")
    expect(page.locator("#live")).to_have_text("live")
    with record.writer("runs") as writer:
        writer.line(LineRow(job="runs", text="<b>said</b>", at=time.time()))
        writer.trial(TrialRow(job="runs", trial_id="runs-new", number=100, status="Running", objective=0.99))
        writer.report(ReportRow(job="runs", trial_id="runs-new", step=1, objective=0.99, metrics={}, at=time.time()))
        writer.flush()
        expect(page.locator(".log")).to_contain_text("<b>said</b>")
        expect(page.get_by_role("table", name="Trials").locator(".rows a").first).to_have_text("runs-new")
        served.end()
        expect(page.locator("#live")).to_have_text("reconnecting…")
        writer.line(LineRow(job="runs", text="missed", at=time.time()))
        writer.flush()
        served.start()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator(".log")).to_contain_text("missed")


def test_jobs_side_by_side(visit: Visit) -> None:
    page = visit("#/jobs")
    for name in ("sixty", "hostile"):
        page.get_by_label(f"compare {name}").check()
    page.get_by_role("link", name="Compare 2 jobs").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Comparison of 2 jobs")
    expect(page.locator("table.compare thead a")).to_have_text(["sixty", "hostile"])
