"""The command that writes the page of a job, or of several jobs side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Optional, TypeVar

import typer

from hpo.cli.options import StoreUrl
from hpo.cli.shell_completion import job_names
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from hpo.report import JobData, Page

_T = TypeVar("_T")


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
    file = _written(page.write, "--output", output or f"{'-'.join(names)}.html")
    show(page.verdict, f"Wrote {file}")
    if pictures is not None:
        show(f"Wrote {len(_written(page.write_pictures, '--pictures', pictures))} pictures to {pictures}")


def _page(jobs: list[JobData]) -> Page:
    from hpo.report import comparison_page, job_page

    return job_page(jobs[0]) if len(jobs) == 1 else comparison_page(jobs)


def _written(write: Callable[[str], _T], option: str, place: str) -> _T:
    try:
        return write(place)
    except OSError as error:
        raise ConfigurationError(f"{option} {place!r} cannot be written: {error.strerror or error}") from error
