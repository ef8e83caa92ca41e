"""Acts of a user in the console."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from hpo.record import Store
from tests.support.small_job import write_job

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
    expect(page.locator(".newjob .footer .good")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()


def done(store: Store, job: str) -> list[tuple[str, str]]:
    """Return the kind and the user of each act on a job."""
    return [(act.kind, act.by) for act in store.acts(job)]
