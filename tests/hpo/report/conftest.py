"""A real Chromium, and pages opened in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from hpo.report import JobData
from tests.support.browser import Opened
from tests.support.programs import CHROMIUM
from tests.support.records import made_up

PATIENCE_MS = 120_000
"""For whatever has to happen sooner or later; other tests may have the processors."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The Chromium that is installed.

    No longer than a module's tests: while playwright runs, `asyncio.run` does not, which others may call.
    """
    with sync_playwright() as playwright:
        path = next(found for name in CHROMIUM if (found := shutil.which(name)))
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def opening(chromium: Browser, folder: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a report's HTML; what it asks the network for is noted, and refused."""
    contexts = []

    def see(html: str, *, width: int = 1280, **options: Any) -> Opened:
        file = folder / f"page-{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        opened = Opened(tab=context.new_page(), url=file.as_uri())

        def decide(route: Any) -> None:
            opened.asked.append(route.request.url)
            route.continue_() if route.request.url == opened.url else route.abort()

        context.route("**/*", decide)
        opened.tab.on("console", lambda said: opened.complaints.append(f"{said.type}: {said.text}"))
        opened.tab.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.tab.on("dialog", lambda dialog: (opened.complaints.append(dialog.message), dialog.dismiss()))
        opened.tab.goto(opened.url)
        return opened

    try:
        yield see
    finally:
        for context in contexts:
            context.close()


@pytest.fixture
def see(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens pages for one test."""
    with opening(chromium, tmp_path) as see:
        yield see


@pytest.fixture(scope="module")
def see_once(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Opened]]:
    """Opens pages for all tests of a module: to draw a page's pictures takes seconds."""
    with opening(chromium, tmp_path_factory.mktemp("pages")) as see:
        yield see


@pytest.fixture(scope="session")
def job() -> JobData:
    """A job of 60 trials, some of which failed or diverged."""
    return made_up(name="sixty", trials=60, trainer="ParameterServerTrainer")
