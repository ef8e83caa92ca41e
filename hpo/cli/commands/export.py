"""The command that writes a job's record for other tools."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from hpo.cli.options import JobName, StoreUrl


class Format(StrEnum):
    """Formats of an export."""

    PARQUET = "parquet"
    CSV = "csv"
    OPTUNA = "optuna"


def export(
    name: JobName,
    form: Annotated[
        Format,
        typer.Option("--format", help="Files of trials, reports and billed seconds, or a study of Optuna."),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="WHERE",
            help="A folder that is not there or empty; for optuna, a storage's URL such as sqlite:///study.db.",
        ),
    ],
    store: StoreUrl = None,
) -> None:
    """Write a job's record for other tools: Parquet, CSV, or an Optuna study.

    A running job is exported as it stands. Existing files are never
    overwritten. A study is for optuna-dashboard, and for Optuna itself.
    """
    from hpo.cli.terminal import show
    from hpo.export import to_csv, to_optuna, to_parquet
    from hpo.text import count, masked

    if form is Format.OPTUNA:
        from optuna.logging import WARNING, set_verbosity

        set_verbosity(WARNING)
        study = to_optuna(name, out, store=store)
        show(f"Wrote study {name} with {count(len(study.get_trials(deepcopy=False)), 'trial')} to {masked(out)}")
        show(f"Look at it with: optuna-dashboard {masked(out)}")
        return
    for file in (to_parquet if form is Format.PARQUET else to_csv)(name, out, store=store):
        show(f"Wrote {file}")
