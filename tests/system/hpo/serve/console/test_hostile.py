"""Texts of a record that are HTML and JavaScript, in a real browser: none runs; and what other sites may not do."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from hpo.record import Store
from hpo.record.tables import LineRow
from tests.support.console import Served, put
from tests.support.programs import CHROMIUM
from tests.support.records import HOSTILE

Visit = Callable[..., Page]

SCRIPTS = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "\"'><svg onload=alert(1)>",
    "</textarea></title></style><iframe srcdoc='<script>parent.alert(1)</script>'>",
    "<a href='javascript:alert(1)'>x</a><base href=//evil.example/>",
    "<style>@import '//evil.example/x.css'</style><p style='background:url(//evil.example/x)' onclick=alert(1)>x</p>",
)
ALL = " ".join(SCRIPTS)
NAME = "<img src=x onerror=alert(1)>"
"""A name that no door takes, in a record that somebody else has written to."""

WATCH = """
window.found = [];
document.addEventListener("securitypolicyviolation", (each) => window.found.push(each.violatedDirective));
window.alert = () => window.found.push("alert");
"""


@pytest.fixture(scope="module")
def hostile(record: Store, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a job, all of whose texts are hostile."""
    put(record, name="everywhere", trials=12, hostile=True)
    now = time.time()
    log = tmp_path_factory.mktemp("log") / "driver.log"
    log.write_text("".join(f"{each}\n" for each in SCRIPTS))
    spec = record.job("everywhere").spec
    spec["estimator"] |= {"options": {}}
    with record.writer("everywhere") as writer:
        for each in SCRIPTS:
            writer.line(LineRow(job="everywhere", text=each, at=now))
        for number, row in enumerate(record.trials("everywhere")[:6]):
            values = {ALL: ALL, **row.hyperparameters}
            texts: dict[str, Any] = {"failure_reason": ALL, "traceback": ALL, "checkpoint": ALL}
            status: Any = "Failed" if number % 2 else row.status
            writer.trial(replace(row, hyperparameters=values, status=status, logs=f"{ALL}:{ALL}", **texts))
        writer.flush()
    record.act("everywhere", "deployed", {"endpoint": ALL, "trial": ALL, "url": "javascript:alert(1)"}, by=ALL)
    tags = [{"Key": each, "Value": each} for each in SCRIPTS]
    path = record.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        told = json.dumps({**spec, "tags": tags}), ALL, json.dumps({"log": str(log), "host": ALL})
        connection.execute("UPDATE jobs SET spec = ?, reason = ?, driver = ? WHERE name = 'everywhere'", told)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            if column := "job" if "job" in columns else "name" if table == "jobs" else "":
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = 'hostile'", (NAME,))
        connection.commit()
    return "everywhere"


def test_no_text_of_a_record_runs(visit: Visit, record: Store, hostile: str) -> None:
    trial = next(row.trial_id for row in record.trials(hostile) if row.status == "Failed")
    page = visit("#/jobs")
    page.context.add_init_script(WATCH)
    base = page.url.partition("#")[0]
    places = {
        "#/jobs": NAME,
        f"#/jobs/{hostile}": SCRIPTS[1],
        f"#/jobs/{quote(NAME, safe='')}": NAME,
        f"#/jobs/{hostile}/trials/{quote(trial, safe='')}": SCRIPTS[3],
        f"#/compare/{hostile},sixty": HOSTILE,
        f"#/new/{hostile}": "",
    }
    for place, shown in places.items():
        page.goto("about:blank")
        page.goto(f"{base}{place}")
        page.locator("#main h1").first.wait_for()
        expect(page.locator("#main")).to_contain_text(shown, timeout=20_000)
        if "new" in place:
            page.locator("#main form, #main textarea").first.wait_for(timeout=20_000)
        page.wait_for_timeout(300)  # What is drawn a little later.
        assert page.evaluate("window.found") == [], place
        made = "script:not([src]), #main script, #main iframe, #main base, #main img, #main style, [onerror], [onclick]"
        assert page.locator(made).count() == 0, place
        assert page.locator("a[href^='javascript:' i]").count() == 0, place


def test_the_watch_sees_what_would_run(served: Served, chromium: Browser) -> None:
    with chromium.new_context() as context:
        context.add_init_script(WATCH)
        page = context.new_page()
        page.goto(f"{served.base}/login")
        page.evaluate("document.body.innerHTML = '<img src=x onerror=alert(1)>'")
        page.wait_for_function("window.found.length > 0")


def test_no_page_can_frame_the_console(served: Served, chromium: Browser) -> None:
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(served.login)
        page.locator("#main h1").wait_for()
        for parent in ("about:blank", f"{served.base}/healthz"):
            page.goto(parent)
            page.set_content(f"<iframe src='{served.base}/#/jobs'></iframe><iframe src='{served.base}/login'></iframe>")
            page.wait_for_function("window.frames.length == 2")
            until(lambda: all("chrome-error" in each.url for each in page.frames[1:]), page)


def until(found: Callable[[], bool], page: Page) -> None:
    """Waits, while the browser goes on."""
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end, [each.url for each in page.frames]
        page.wait_for_timeout(50)


def test_a_foreign_name_that_leads_here_is_refused(served: Served, chromium: Browser) -> None:
    path = next(found for name in CHROMIUM if (found := shutil.which(name)))
    rebound = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP evil.example 127.0.0.1"]
    browser = chromium.browser_type.launch(executable_path=path, args=rebound)
    try:
        page = browser.new_page()
        for place in ("/", "/login", "/healthz", "/api/jobs", "/static/main.js"):
            answer = page.goto(f"http://evil.example:{served.port}{place}")
            assert answer is not None
            assert answer.status == 421, place
        asked = "fetch('/api/jobs', {headers: {Authorization: 'Bearer TOKEN'}}).then((answer) => answer.status)"
        assert page.evaluate(asked.replace("TOKEN", served.token)) == 421
    finally:
        browser.close()


def test_another_site_cannot_log_a_browser_in(served: Served, chromium: Browser) -> None:
    with chromium.new_context() as context:
        page = context.new_page()
        page.route(
            "http://evil.example/**", lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html")
        )
        page.goto("http://evil.example/")
        link = served.login
        page.evaluate(f"location.href = '{link}'")
        page.wait_for_function("document.body && document.body.textContent.includes('Forgery')")
