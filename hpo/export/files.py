"""A job's tables as files in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpo.export.columns import job_tables
from hpo.record import Store
from trainers.deletion import temporary_folder
from trainers.errors import ConfigurationError, WarmbandError


def to_parquet(name: str, folder: str | Path, *, store: str | None = None) -> list[Path]:
    """Writes a job's trials, reports and billed seconds as trials.parquet, reports.parquet and ledger.parquet.

    `hpo.export.columns.job_tables` says which columns they have.

    Args:
        name: the job, running or not.
        folder: is made; must not be there, unless it is empty. All three files appear in it, or nothing does.
        store: database URL of the record; None is the one that is found by itself.

    Returns:
        The three files.

    Raises:
        ConfigurationError: there is no such job, or `folder` is there already or cannot be made.
    """
    from pyarrow import parquet

    return _write(name, folder, store, "parquet", parquet.write_table)


def to_csv(name: str, folder: str | Path, *, store: str | None = None) -> list[Path]:
    """Writes the tables of `to_parquet` as trials.csv, reports.csv and ledger.csv.

    Numbers have all their digits; what is not finite is nan, inf or -inf. Text is in quotes, and a cell without
    anything is null.

    Args:
        name: as for `to_parquet`.
        folder: as for `to_parquet`.
        store: as for `to_parquet`.

    Returns:
        The three files.

    Raises:
        ConfigurationError: as for `to_parquet`.
    """
    from pyarrow import csv

    return _write(name, folder, store, "csv", csv.write_csv)


def _write(
    name: str, folder: str | Path, store: str | None, suffix: str, write: Callable[[Any, Path], None]
) -> list[Path]:
    goal = _free(folder)
    with Store(store) as opened:
        tables = job_tables(opened, name)
    try:
        with temporary_folder(goal.parent, prefix=f".{goal.name}-", mode=0o777) as aside:
            for table, rows in tables.items():
                write(rows, aside / f"{table}.{suffix}")
            aside.rename(goal)  # In the place of an empty folder; where it is not empty by now, this fails.
    except OSError as error:
        raise WarmbandError(
            f"{goal} cannot be written: {error.strerror or error}; give another folder, or make room"
        ) from error
    return [goal / f"{table}.{suffix}" for table in tables]


def _free(folder: str | Path) -> Path:
    if "://" in str(folder):
        raise ConfigurationError(f"{str(folder)!r} is not a local folder; give one, and copy it from there")
    goal = Path(folder).resolve()
    if goal.is_dir():
        if any(goal.iterdir()):
            raise ConfigurationError(f"the folder {str(folder)!r} is there and not empty; give another, or remove it")
    elif goal.exists():
        raise ConfigurationError(f"{str(folder)!r} is there and no folder; give another name")
    return goal
