"""The page as a person meets it: in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record.job_view import ranked
from hpo.record.store import Store
from hpo.report import Code, Column, Figure, JobData, Page, Section, Table, job_page
from tests.support.browser import Opened
from tests.support.records import HOSTILE, large, made_up, write
from tests.support.refusals import mentions

See = Callable[..., Opened]

TRIALS = "section[aria-labelledby=trials]"
SECTIONS = [
    "result",
    "learning",
    "cost",
    "hyperparameters",
    "model",
    "staleness",
    "configuration",
    "trials",
    "failures",
]


@pytest.fixture(scope="module")
def html(job: JobData) -> str:
    return job_page(job).html()


@pytest.fixture(scope="module")
def text(job: JobData) -> str:
    """The same page without its pictures, which take their time."""
    page = job_page(job)
    sections = [replace(each, blocks=[b for b in each.blocks if not isinstance(b, Figure)]) for each in page.sections]
    return replace(page, sections=sections).html()


@pytest.fixture(scope="module")
def light(html: str, see_once: See) -> Opened:
    """The page, opened on a narrow window of who likes it light. Tests leave it as it was, but for the width."""
    return see_once(html, width=390, color_scheme="light")


@pytest.fixture(scope="module")
def dark(html: str, see_once: See) -> Opened:
    """The same, opened on a wide window of who likes it dark."""
    return see_once(html, width=1280, color_scheme="dark")


@pytest.fixture(scope="module")
def text_tab(text: str, see_once: See) -> Opened:
    return see_once(text)


@pytest.fixture
def plain(text_tab: Opened) -> Opened:
    """The page without its pictures, as it is first seen."""
    text_tab.tab.goto(text_tab.url)
    return text_tab


# ---- as a whole


@pytest.mark.parametrize(("scheme", "widths"), [("light", (390, 1280)), ("dark", (1280, 390))], ids=["light", "dark"])
def test_it_shows_everything_and_asks_for_nothing(
    scheme: str, widths: tuple[int, int], request: pytest.FixtureRequest
) -> None:
    opened: Opened = request.getfixturevalue(scheme)
    tab = opened.tab
    for width in widths:
        tab.set_viewport_size({"width": width, "height": 900})
        opened.settle()
        assert opened.asked == [opened.url]
        assert opened.complaints == []
        opened.fits(width)
        paper, ink = (luminance(tab, "body", name) for name in ("background-color", "color"))
        assert (paper > 0.8 > 0.2 > ink) if scheme == "light" else (paper < 0.2 < 0.8 < ink)
        # What is drawn has the scheme's colours too.
        assert contrast(tab, ".xtick text", "fill", paper) > 4.5
        for text in (".verdict", ".note", "figcaption", "thead th", "nav a", ".status.bad", "dt", "footer", ".bar"):
            assert contrast(tab, text, "color", paper) > 4.5, text
    assert [each.get_attribute("id") for each in tab.locator("h2").all()] == [*SECTIONS, "environment"]
    buttons = {str(each.get_attribute("data-title")) for each in tab.locator(".modebar-btn").all()}
    assert buttons <= {"Zoom", "Pan", "Reset axes", "Download plot as a PNG"}  # none sends anything anywhere


def test_it_can_be_read_without_seeing_it(light: Opened) -> None:
    opened = light
    levels = opened.tab.locator("h1, h2, h3").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert opened.tab.locator("thead th:not([scope=col]), tbody th:not([scope=row])").count() == 0
    assert opened.tab.locator("tbody tr:not(:has(> th:first-child))").count() == 0
    for plot in opened.tab.locator(".plot").all():
        assert plot.get_attribute("role") == "img"
        assert len(plot.get_attribute("aria-label") or "") > 5
        told = opened.tab.locator(f"#{plot.get_attribute('aria-describedby')}")
        assert len(told.inner_text()) > 20
    ids = opened.tab.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert opened.tab.locator("nav a").evaluate_all("all => all.every(a => document.getElementById(a.hash.slice(1)))")


def test_its_policy_lets_no_other_script_run(text: str, see: See) -> None:
    opened = see(text.replace("<main>", "<main><script>window.ran = true</script><b onclick='window.ran = true'>x</b>"))
    opened.tab.locator("main b").click()
    assert opened.tab.evaluate("window.ran") is None
    assert len([said for said in opened.complaints if "Content Security Policy" in said]) == 2


def test_without_its_script_the_page_is_whole(text: str, see: See, job: JobData) -> None:
    opened = see(text, java_script_enabled=False)
    assert opened.tab.locator(f"{TRIALS} tbody tr:visible").count() == len(job.trials)
    assert opened.tab.locator("button:visible").count() == 0


def test_on_paper_it_is_light_and_has_no_controls(dark: Opened) -> None:
    controls = dark.tab.locator("nav:visible, button:not(th button):visible, input:visible")
    assert controls.count() > 0
    dark.tab.emulate_media(media="print", color_scheme="dark")
    try:
        assert controls.count() == 0
        assert luminance(dark.tab, "body", "background-color") > 0.9
    finally:
        dark.tab.emulate_media(media="screen", color_scheme="dark")


# ---- what its tables hold


def test_the_command_writes_what_the_store_holds(home: Path, tmp_path: Path, see: See, job: JobData) -> None:
    with Store() as store:
        write(store, job)
        stored = JobData.read(store, job.title)
    file = tmp_path / "out.html"
    said = CliRunner().invoke(app, ["report", job.title, "-o", str(file)])
    assert said.exit_code == 0, said.output
    # Without its scripts, which would draw its pictures first, it has all rows.
    opened = see(file.read_text(encoding="utf-8"), java_script_enabled=False)
    rows = opened.tab.locator(f"{TRIALS} tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.dataset.number ?? cell.textContent))"
    )
    names = list(stored.trials[0].hyperparameters)
    for row, trial in zip(rows, ranked(stored.job, list(stored.trials)), strict=True):
        assert row[:2] == [trial.trial_id, trial.status]
        value = stored.objective(trial)
        assert row[2] == ("" if value is None else repr(value))
        assert int(row[3]) == trial.resource
        assert float(row[5]) == stored.billed_by_trial[trial.trial_id]
        for name, cell in zip(names, row[6:], strict=True):
            held = trial.hyperparameters[name]
            assert (cell if isinstance(held, str) else float(cell)) == held
    kinds = opened.tab.locator("section[aria-labelledby=cost] tbody tr").evaluate_all(
        "rows => rows.map(row => [row.cells[0].textContent, Number(row.cells[1].dataset.number)])"
    )
    assert dict(kinds) == {**stored.billed, "in all": pytest.approx(sum(stored.billed.values()))}


# ---- its controls


def test_a_heading_sorts_and_sorts_back(plain: Opened, job: JobData) -> None:
    plain.tab.locator(f"{TRIALS} .all").click()
    head = plain.tab.locator(f"{TRIALS} thead th").nth(3)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    falling = [int(text) for text in plain.column(TRIALS, 3)]
    assert falling == sorted((trial.resource for trial in job.trials), reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [int(text) for text in plain.column(TRIALS, 3)] == falling[::-1]
    # What has no value comes last either way.
    missing = sum(job.objective(trial) is None for trial in job.trials)
    assert missing
    for _ in range(2):
        plain.tab.locator(f"{TRIALS} thead th").nth(2).get_by_role("button").click()
        assert plain.column(TRIALS, 2)[-missing:] == ["–"] * missing  # noqa: RUF001


def test_trials_are_found_by_status_and_by_text(plain: Opened, job: JobData) -> None:
    opened = plain
    failed = [trial.trial_id for trial in job.trials if trial.status == "Failed"]
    opened.tab.get_by_label("status").select_option("Failed")
    assert opened.column(TRIALS, 0) == failed
    opened.tab.get_by_role("searchbox").fill(failed[1][-4:])
    assert opened.column(TRIALS, 0) == [failed[1]]
    mentions(opened.tab.locator(f"{TRIALS} output").inner_text(), 1, 60)
    opened.tab.get_by_role("searchbox").fill("nothing is called this")
    assert opened.column(TRIALS, 0) == []


def test_fifty_rows_are_seen_first_and_all_on_demand(plain: Opened, job: JobData) -> None:
    opened = plain
    assert len(opened.column(TRIALS, 0)) == 50
    opened.tab.get_by_role("button", name="Show all 60 rows").click()
    assert sorted(opened.column(TRIALS, 0)) == sorted(trial.trial_id for trial in job.trials)
    assert not opened.tab.locator(f"{TRIALS} .all").is_visible()


def test_what_a_search_finds_among_the_rows_not_seen_is_seen(plain: Opened, job: JobData) -> None:
    opened = plain
    last = ranked(job.job, list(job.trials))[-1].trial_id
    assert last not in opened.column(TRIALS, 0)
    opened.tab.get_by_role("searchbox").fill(last)
    assert opened.column(TRIALS, 0) == [last]


def test_code_is_copied_as_it_is(see: See) -> None:
    text = "{eta: 0.3,\n  rule: '</code>&amp;\u2028'}\n"
    opened = see(Page("t", "v", [Section("s", [Code(text, "YAML")])]).html())
    opened.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.tab.get_by_role("button", name="Copy").click()
    opened.tab.get_by_role("button", name="Copied").wait_for()
    assert opened.tab.evaluate("navigator.clipboard.readText()") == text


def test_tracebacks_are_folded_until_they_are_asked_for(plain: Opened) -> None:
    opened = plain
    first = opened.tab.locator("section[aria-labelledby=failures] details").first
    assert not first.locator("pre").is_visible()
    first.locator("summary").click()
    assert "Traceback (most recent call last)" in first.locator("pre").inner_text()


def test_colours_change_in_the_text_and_in_the_pictures(light: Opened) -> None:
    opened = light
    opened.tab.locator(".plot").first.scroll_into_view_if_needed()
    ink = colour(opened.tab, ".xtick text", "fill")
    opened.tab.get_by_role("button", name="Colours").click()
    assert luminance(opened.tab, "body", "background-color") < 0.1
    opened.tab.wait_for_function("ink => getComputedStyle(document.querySelector('.xtick text')).fill !== ink", arg=ink)
    opened.tab.get_by_role("button", name="Colours").click()
    assert luminance(opened.tab, "body", "background-color") > 0.9
    assert opened.complaints == []


def test_two_hyperparameters_are_chosen_from_a_menu(light: Opened) -> None:
    opened = light
    figure = opened.tab.locator("figure", has=opened.tab.locator("[data-name=contours]"))
    figure.locator(".plot").scroll_into_view_if_needed()
    names = figure.locator("option").all_inner_texts()
    assert len(names) == 10

    def shows(pair: str) -> None:
        """Waits until the axes are those of a pair."""
        titles = "pair => ['.xtitle', '.ytitle'].map(t => document.querySelector(`[data-name=contours] ${t}`))"
        said = ".every((title, i) => title && title.textContent.split(' ')[0] === pair.split(' and ')[i])"
        opened.tab.wait_for_function(titles + said, arg=pair)

    shows(names[0])
    figure.get_by_label("Show").select_option(names[-1])
    shows(names[-1])
    for _ in range(2):
        opened.tab.get_by_role("button", name="Colours").click()
        shows(names[-1])
    figure.get_by_label("Show").select_option(names[0])
    shows(names[0])
    assert opened.complaints == []


def test_a_picture_can_be_taken_along(light: Opened) -> None:
    opened = light
    first = opened.tab.locator(".plot").first
    first.hover()
    with opened.tab.expect_download() as download:
        first.locator("[data-title^=Download]").click()
    assert download.value.suggested_filename == "learning-curves.png"
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    assert opened.complaints == []


def test_the_navigation_stays_and_says_where_the_reader_is(text: str, see: See) -> None:
    opened = see(text, width=390, reduced_motion="reduce")
    opened.tab.locator("nav a", has_text="Trials").click()
    opened.tab.locator("nav a[aria-current]", has_text="Trials").wait_for()
    box = opened.tab.locator("nav").bounding_box()
    assert box is not None
    assert box["y"] == 0
    heading = opened.tab.locator("#trials").bounding_box()
    assert heading is not None
    assert heading["y"] >= box["height"]


# ---- what people may have named


def test_names_errors_and_hyperparameters_come_out_as_text(see: See) -> None:
    evil = f"{HOSTILE}\u2028\u202e]]>--!>{{{{7*7}}}}</style></title>"
    data = made_up(name="bad", hostile=True, trials=16)
    trials = tuple(
        replace(trial, failure_reason=trial.failure_reason and f"{evil} {trial.number}") for trial in data.trials
    )
    page = job_page(replace(data, job=replace(data.job, name=evil), trials=trials))
    opened = see(page.html())
    opened.settle()
    tab = opened.tab
    assert opened.complaints == []
    assert opened.asked == [opened.url]
    assert tab.title() == evil
    assert tab.locator("h1").text_content() == evil
    assert evil in (tab.locator("details code").first.text_content() or "")
    assert HOSTILE in (tab.locator("summary").first.text_content() or "")
    assert HOSTILE in (tab.locator(f"{TRIALS} thead").text_content() or "")
    assert tab.locator("img, main script:not([type='application/json'])").count() == 0
    for width in (1280, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        opened.fits(width)
    drawn = tab.locator(".plot").evaluate_all("all => all.map(plot => plot.textContent).join(' ')")
    assert "</script><script>alert" in drawn


# ---- large and small


def test_a_thousand_trials_are_less_than_ten_megabytes_and_are_drawn(see: See) -> None:
    html = job_page(large()).html()
    assert len(html.encode()) < 10_000_000
    opened = see(html)
    opened.settle()
    assert opened.complaints == []
    assert len(opened.column(TRIALS, 0)) == 50
    opened.tab.get_by_role("button", name="Show all 1,000 rows").click()
    assert len(opened.column(TRIALS, 0)) == 1000


def test_a_page_without_pictures_has_no_drawing_library(see: See) -> None:
    table = Table(["what", Column("how much", 2)], [["one", 1.0], ["two", None]], "Both.")
    html = Page("small", "All is well.", [Section("Same", [table]), Section("Same", [table])]).html()
    assert len(html) < 40_000
    opened = see(html)
    assert opened.complaints == []
    assert opened.column("section[aria-labelledby=same-2]", 1) == ["1.00", "–"]  # noqa: RUF001


# ---- colours


def colour(tab: Any, what: str, name: str) -> str:
    return str(tab.locator(what).first.evaluate("(e, name) => getComputedStyle(e)[name]", name))


def luminance(tab: Any, what: str, name: str) -> float:
    """Of a colour as WCAG has it: 0 is black, 1 white."""
    red, green, blue = (float(part) / 255 for part in re.findall(r"[\d.]+", colour(tab, what, name))[:3])
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(tab: Any, what: str, name: str, paper: float) -> float:
    """To the page's background, as WCAG has it: 4.5 and more can be read."""
    low, high = sorted([luminance(tab, what, name), paper])
    return (high + 0.05) / (low + 0.05)


def test_what_luminance_says_of_black_and_white(see: See) -> None:
    opened = see("<b style='color: white; background-color: black'>x</b>")
    assert contrast(opened.tab, "b", "color", luminance(opened.tab, "b", "background-color")) == pytest.approx(21)
    assert json.dumps(opened.complaints) == "[]"
