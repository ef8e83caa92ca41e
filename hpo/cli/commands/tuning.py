"""The command that runs a tuning job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from hpo.cli.options import AllowCode, AsJson, DataDir, Overrides, StoreUrl, Verbose, overrides

if TYPE_CHECKING:
    from hpo.job_file import JobSpec

LOG_WIDTH = 100
"""Columns of what goes into the log of a Ray job, where people read it."""


def tune(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    max_parallel_jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, metavar="N", help="Trials at once, over what the file says."),
    ] = None,
    data_dir: DataDir = None,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Run a tuning job, and say what it found and what it cost.

    Ctrl-C stops the job and keeps what it found. With --json, standard
    output is what hpo describe --json prints, and all else goes to
    standard error.
    """
    from hpo.job_file import read_job

    given = overrides(set_, **{"tuning.max_parallel_jobs": max_parallel_jobs, "store": store})
    _run(read_job(job, given, allow_code=allow_code), data_dir, verbose, as_json)


def _run(spec: JobSpec, data_dir: str | None, verbose: bool, as_json: bool) -> None:
    from hpo.cli.terminal import show_json, terminal, working
    from hpo.jobs import check_pinned, ray_job
    from hpo.tuner import HyperparameterTuner

    check_pinned()
    console = terminal(stderr=as_json)
    if ray_job():
        console.width = LOG_WIDTH
    tuner = HyperparameterTuner(**spec.arguments(), console=console, verbose=verbose)
    try:
        with working(as_json=as_json):
            tuner.fit(spec.channels(data_dir), job_name=spec.name)
    finally:
        if as_json and tuner.latest_tuning_job is not None:
            show_json(tuner.describe())
