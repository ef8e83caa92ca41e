"""Commands that write a job's record for other tools, and register its model in one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Optional

import typer

from hpo.cli.options import AllowCode, AsJson, JobName, StoreUrl


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


def register(
    name: JobName,
    model: Annotated[str, typer.Option(metavar="MODEL", help="What the registry calls the model.")],
    tracking_uri: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="URI", help="MLflow's server or database; else its own choice, by MLFLOW_TRACKING_URI."),
    ] = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Register a job's best model in MLflow, with what it came from.

    The version's tags say job, trial, seed, metric, hyperparameters, data
    and commit. A model that is registered already keeps its version.
    """
    from hpo import HyperparameterTuner, TrainingJob
    from hpo.cli.terminal import show, show_json
    from hpo.record import Store, is_training
    from hpo.text import masked

    with Store(store) as opened:
        once = is_training(opened.job(name))
    kind = TrainingJob if once else HyperparameterTuner
    made = kind.attach(name, store=store, allow_code=allow_code).register(model, tracking_uri)
    if as_json:
        show_json(made.to_json())
        return
    show(
        f"{'Registered' if made.new else 'Registered before:'} {made.uri}"
        + (f" in {masked(tracking_uri)}" if tracking_uri else "")
    )
