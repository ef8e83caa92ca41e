"""The command that writes the page of a job, or of several jobs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from hpo.cli.options import StoreUrl
from hpo.cli.shell_completion import job_names
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from hpo.report import JobData, Page


def report(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The jobs' names.", autocompletion=job_names)],
    output: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE.html", help="The file to write; else NAME.html, here."),
    ] = None,
    pictures: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="FOLDER", help="Write each picture there too, as PNG and SVG."),
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Write a page about a job, or about several side by side.

    The page is one file that needs no network: what the job found and
    what it cost, as tables and pictures, the configuration to copy, and
    what it ran on. Of a job that still runs, it shows what the record
    holds so far.
    """
    from hpo.cli.terminal import show
    from hpo.record import Store
    from hpo.report import JobData

    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigurationError(f"{twice!r} is named twice; give each job once")
    with Store(store) as opened:
        jobs = [JobData.read(opened, name) for name in names]
    page = _page(jobs)
    file = _write(page, output or f"{'-'.join(names)}.html")
    show(page.verdict, f"Wrote {file}")
    if pictures is not None:
        show(f"Wrote {len(_write_pictures(page, pictures))} pictures to {pictures}")


def _page(jobs: list[JobData]) -> Page:
    if len(jobs) == 1:
        from hpo.report import job_page

        return job_page(jobs[0])
    from hpo.report import comparison_page

    return comparison_page(jobs)


def _write(page: Page, file: str) -> Path:
    try:
        return page.write(file)
    except OSError as error:
        raise ConfigurationError(f"--output {file!r} cannot be written: {error.strerror or error}") from error


def _write_pictures(page: Page, folder: str) -> list[Path]:
    try:
        return page.write_pictures(folder)
    except OSError as error:
        raise ConfigurationError(f"--pictures {folder!r} cannot be written: {error.strerror or error}") from error
