"""Takes the pictures of docs/guides/watching.md, in Chromium, of a cluster on which a job runs: see its `--help`."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
WAIT = 60_000
"""Milliseconds in which a page has to show what is waited for."""


def main() -> None:
    """Takes them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dashboard", required=True)
    parser.add_argument("--prometheus", required=True)
    parser.add_argument("--job", required=True)
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        if token := os.environ.get("RAY_AUTH_TOKEN"):
            page.request.post(f"{given.dashboard}/api/authenticate", headers={"Authorization": f"Bearer {token}"})
        dashboard(page, given.dashboard, given.job)
        graph(page, given.prometheus, given.job)
        browser.close()


def dashboard(page: Page, url: str, job: str) -> None:
    """Ray's pages."""
    page.goto(f"{url}/#/jobs")
    page.get_by_text("RUNNING").first.wait_for(timeout=WAIT)
    shoot(page, "jobs")
    page.goto(f"{url}/#/jobs/{job}")
    page.get_by_text("job_name").first.wait_for(timeout=WAIT)
    shoot(page, "job")
    page.goto(f"{url}/#/actors")
    page.get_by_label("Name").first.fill(job)
    page.keyboard.press("Enter")
    page.get_by_text(f"{job}-mailbox-").first.wait_for(timeout=WAIT)
    shoot(page, "actors")
    node = page.request.get(f"{url}/nodes?view=summary").json()["data"]["summary"][0]["raylet"]["nodeId"]
    page.goto(f"{url}/#/logs/viewer?{urlencode({'nodeId': node, 'fileName': f'warmband-{job}.log'})}")
    page.get_by_text(f"{job}-0").first.wait_for(timeout=WAIT)
    shoot(page, "log")


def graph(page: Page, url: str, job: str) -> None:
    """Prometheus' own graph page."""
    asked = f'max by (state) (ray_warmband_trials{{tuning_job="{job}"}})'
    page.set_viewport_size({"width": 1280, "height": 960})
    page.goto(f"{url}/graph?{urlencode({'g0.expr': asked, 'g0.tab': 0, 'g0.stacked': 1, 'g0.range_input': '3m'})}")
    page.get_by_text('state="completed"').first.wait_for(timeout=WAIT)
    shoot(page, "prometheus")


def shoot(page: Page, name: str) -> None:
    """Takes one, once nothing moves any more."""
    page.wait_for_timeout(1500)
    page.screenshot(path=HERE / f"{name}.png")


if __name__ == "__main__":
    main()
