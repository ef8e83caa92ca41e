"""The `hpo` command."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Table

from hpo.spec import read_job
from trainers import datasets
from trainers.errors import ConfigurationError, DataError, WarmbandError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
data_app = typer.Typer(no_args_is_help=True, help="Datasets with a name: what there is, fetching, checking.")
app.add_typer(data_app, name="data")

DataDir = Annotated[
    Optional[str],  # noqa: UP045  # typer reads it
    typer.Option(help="Folder that holds datasets; else WARMBAND_DATA, else WARMBAND_HOME/data."),
]


@app.callback()
def _root() -> None:
    """Tune models whose every trial is a distributed training run."""


@app.command()
def tune(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    max_parallel_jobs: Annotated[Optional[int], typer.Option(min=1, help="Trials at once.")] = None,  # noqa: UP045
    data_dir: DataDir = None,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", metavar="KEY=VALUE", help="A key of the job file, dotted, and its value."),
    ] = None,
) -> None:
    """Run a tuning job and say what it found and what it cost."""
    overrides = list(set_ or [])
    if max_parallel_jobs is not None:
        overrides.append(f"tuning.max_parallel_jobs={max_parallel_jobs}")
    spec = read_job(job, overrides)
    try:
        spec.tuner().fit(spec.data.open(data_dir), job_name=spec.name)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@data_app.command("list")
def data_list() -> None:
    """Show the datasets that have a name."""
    table = Table(box=None, pad_edge=False)
    for column in ("name", "rows", "licence", "from"):
        table.add_column(column)
    for info in datasets.DATASETS.values():
        table.add_row(info.name, f"{info.rows:,}", info.licence, info.source)
    Console().print(table)


@data_app.command("fetch")
def data_fetch(name: str, data_dir: DataDir = None) -> None:
    """Download a dataset, verified by its sums."""
    typer.echo(f"{name} is at {datasets.fetch(name, data_dir)}")


@data_app.command("check")
def data_check(name: str, data_dir: DataDir = None) -> None:
    """Compare a dataset's files with their sums."""
    checked = datasets.check(name, data_dir)
    for path, good, problem in checked:
        typer.echo(f"{path}: {'ok' if good else problem}")
    if not checked:
        typer.echo(f"{name} is generated: there is nothing to check")
    if not all(good for _, good, _ in checked):
        raise DataError(f"dataset {name!r} is not whole here; run `hpo data fetch {name}`")


def main() -> None:
    """Runs the command. Exits with 0; 1: the job failed; 2: what was asked for is wrong; 130: Ctrl-C."""
    try:
        app()
    except WarmbandError as error:
        Console(stderr=True, highlight=False).print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigurationError | DataError) else 1)
