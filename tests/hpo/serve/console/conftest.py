"""A real server over a record of two jobs, and a real Chromium that is logged in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from hpo.record import Store
from tests.support.console import Served, put
from tests.support.programs import CHROMIUM
from tests.support.rows import sqlite_url

PATIENCE_MS = 180_000
"""Of all that is waited for in the browser: a job's driver takes its time to come up on a busy machine."""

expect.set_options(timeout=PATIENCE_MS)  # It holds for the whole process, so that no module says another one.


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The Chromium that is installed."""
    with sync_playwright() as playwright:
        path = next(found for name in CHROMIUM if (found := shutil.which(name)))
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The record that the server serves."""
    folder = tmp_path_factory.mktemp("record")
    with Store(sqlite_url(folder)) as store:
        put(store, name="sixty", trials=60, trainer="ParameterServerTrainer")
        put(store, name="hostile", trials=12, hostile=True)
        yield store


@pytest.fixture(scope="module")
def served(record: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server."""
    made = Served(record.url, tmp_path_factory.mktemp("serve"))
    try:
        made.start()
        yield made
        made.end()
    finally:
        made.kill_all()


@pytest.fixture
def visit(chromium: Browser, served: Served) -> Iterator[Callable[..., Page]]:
    """Opens a page of the console; a complaint of the browser fails the test."""
    contexts, complaints = [], []

    def go(place: str, *, width: int = 1280, scheme: str = "light", token: str = "") -> Page:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda said: complaints.append(said.text) if "Security Policy" in said.text else None)
        page.goto(f"{served.base}/login?token={token}" if token else served.login)
        page.locator("#main h1").wait_for()
        page.goto(f"{served.base}/{place}")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not complaints
