"""The commands that run a job here: a tuning job, or a single training."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from hpo.cli.options import LOG_WIDTH, AllowCode, AsJson, DataDir, NewName, Overrides, StoreUrl, Verbose, overrides
from trainers.errors import NoJobError

if TYPE_CHECKING:
    from rich.console import Console

    from hpo.job_file import JobSpec, TrainingSpec


def tune(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    name: NewName = None,
    max_parallel_jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, metavar="N", help="Trials at once, over what the file says."),
    ] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the job and its data, show the plan, and run nothing.")
    ] = False,
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

    given = overrides(set_, **{"name": name, "tuning.max_parallel_jobs": max_parallel_jobs, "store": store})
    _run(read_job(job, given, allow_code=allow_code), data_dir, dry_run=dry_run, verbose=verbose, as_json=as_json)


def _run(spec: JobSpec, data_dir: str | None, *, dry_run: bool, verbose: bool, as_json: bool) -> None:
    from hpo.cli.terminal import show_json, terminal, working
    from hpo.jobs import check_pinned, ray_job
    from hpo.tuner import HyperparameterTuner

    check_pinned()
    console = terminal(stderr=as_json)
    if ray_job():
        console.width = LOG_WIDTH
    tuner = HyperparameterTuner(**spec.arguments(), console=console, verbose=verbose)
    if dry_run:
        tuner.check(spec.channels(data_dir), spec.name)
        return
    try:
        with working(as_json=as_json):
            tuner.fit(spec.channels(data_dir), job_name=spec.name)
    finally:
        if as_json and tuner.latest_tuning_job is not None:
            with suppress(NoJobError):  # It is removed where its cluster does not answer.
                show_json(tuner.describe())


def train(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    name: NewName = None,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait for the end, or leave it to a process in the background."),
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the job and its data, and run nothing.")] = False,
    data_dir: DataDir = None,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Train one configuration, as a job with a name, a bill and logs.

    The job file is one without the group tuning. Of one that has it,
    objective, limits and seed are taken, and each hyperparameter with a
    range needs a value under trainer.hyperparameters. The training goes
    on from its last checkpoint if it loses its workers; hpo resume goes
    on with one that was stopped, or whose driver died. With --no-wait
    the job runs on the Ray cluster that is named, else in the background
    of this machine. With --json, standard output is what hpo describe
    --json prints, and all else goes to standard error.
    """
    from hpo.cli.terminal import terminal
    from hpo.job_file import read_training
    from hpo.jobs import check_pinned, ray_job

    given = overrides(set_, name=name, store=store)
    spec = read_training(job, given, allow_code=allow_code)
    check_pinned()
    console = terminal(stderr=as_json)
    if ray_job():
        console.width = LOG_WIDTH
    _run_training(spec, console, data_dir, verbose=verbose, wait=wait, dry_run=dry_run, as_json=as_json)


def _run_training(
    spec: TrainingSpec,
    console: Console,
    data_dir: str | None,
    *,
    verbose: bool,
    wait: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    from hpo.cli.terminal import show_json, working
    from hpo.training import TrainingJob

    training = TrainingJob.of(**spec.arguments(), console=console, verbose=verbose)
    channels = spec.channels(data_dir)
    if dry_run:
        training.check(channels, spec.name)
        return
    try:
        with working(as_json=as_json):
            training.fit(channels, spec.name, wait)
    finally:
        if as_json and training.name is not None:
            with suppress(NoJobError):
                show_json(training.describe())
