"""Commands about named datasets."""

from __future__ import annotations

import typer

from hpo.cli.options import AsJson, Command, DataDir, DatasetName, Group

app = typer.Typer(cls=Group, no_args_is_help=True, help="Datasets that have a name: list, fetch, check.")


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


@app.command("check", cls=Command)
def data_check(name: DatasetName, data_dir: DataDir = None) -> None:
    """Compare a dataset's files with the published sums."""
    from trainers import datasets
    from trainers.errors import DataError

    checked = datasets.check(name, data_dir)
    for path, good, problem in checked:
        typer.echo(f"{path}: {'ok' if good else problem}")
    if not checked:
        typer.echo(f"{name} needs no download: there is nothing to check")
    if not all(good for _, good, _ in checked):
        raise DataError(f"dataset {name!r} is not whole here; run `hpo data fetch {name}`")
