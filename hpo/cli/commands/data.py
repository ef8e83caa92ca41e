"""Commands about data: named datasets, and what is in files before a job."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from hpo.cli.options import AllowCode, AsJson, Command, DataDir, DatasetName, Group, SlowCommand
from hpo.cli.shell_completion import dataset_names

app = typer.Typer(cls=Group, no_args_is_help=True, help="Datasets that have a name, and a check of any data.")


@app.command("list", cls=Command)
def data_list(as_json: AsJson = False) -> None:
    """List the datasets that have a name."""
    from dataclasses import asdict

    from rich.table import Table

    from hpo.cli.terminal import show, show_json
    from trainers.datasets import DATASETS

    if as_json:
        show_json([asdict(info) for info in DATASETS.values()])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "rows", "licence", "from"):
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "rows"))
    for info in DATASETS.values():
        table.add_row(info.name, f"{info.rows:,}", info.licence, info.source)
    show(table)


@app.command("fetch", cls=Command)
def data_fetch(name: DatasetName, data_dir: DataDir = None) -> None:
    """Download a dataset, and verify it by its SHA-256."""
    from trainers import datasets

    typer.echo(f"{name} is at {datasets.fetch(name, data_dir)}")


@app.command("check", cls=SlowCommand)
def data_check(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="A dataset that has a name, a job file, or CSV and Parquet files: paths, which are one channel, or "
            "CHANNEL=PATH for each of several.",
            autocompletion=dataset_names,
        ),
    ],
    target: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="COLUMN",
            help="The column to predict, of files; the first of files without names, and else the one column that is "
            "called target, label, y, class or outcome.",
        ),
    ] = None,
    drop: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="COLUMN", help="A column of files to leave out; may be repeated."),
    ] = None,
    keep: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="COLUMN", help="A column of files to keep that looks like an identifier; may be repeated."
        ),
    ] = None,
    categorical: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="COLUMN", help="A column of files that holds categories; may be repeated."),
    ] = None,
    missing: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(metavar="NUMBER", help="Number that stands for a missing value in files."),
    ] = None,
    delimiter: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="CHARACTER", help="What separates the cells of CSV files; else a comma."),
    ] = None,
    workers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, metavar="N", help="Workers that will train; else those of the job file, or several."),
    ] = None,
    data_dir: DataDir = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Say what is in data before anything is paid for.

    Columns, missing values, classes, rows that are in several channels,
    columns that give the label away, and what a worker would load. Files
    of a dataset that has a name are compared with the published sums.
    """
    from dataclasses import replace

    from hpo.cli.checked_data import as_options, channels_of, errors_with_options
    from hpo.cli.terminal import show, show_json, working
    from hpo.cli.views import report_json, report_parts
    from trainers.data_check import check_data

    with working(as_json=as_json), errors_with_options(what):
        columns = {
            "target": target,
            "drop": drop,
            "keep": keep,
            "categorical": categorical,
            "missing": missing,
            "delimiter": delimiter,
        }
        channels, gang, refusals = channels_of(what, columns, data_dir, allow_code=allow_code)
        report = check_data(channels, workers=workers or gang)
        findings = (*refusals, *(as_options(each, what) for each in report.findings))
        report = replace(report, findings=findings)
    if as_json:
        show_json(report_json(report))
    else:
        show(*(as_options(part, what) if isinstance(part, str) else part for part in report_parts(report)))
