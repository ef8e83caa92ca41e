"""The command that forecasts the seconds and the cost of a tuning job."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from hpo.cli.options import AllowCode, AsJson, DataDir, Overrides, StoreUrl, Verbose


def forecast(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    data_dir: DataDir = None,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Say what a tuning job would take, without running it.

    Worker-seconds, wall time and, with prices, money: at most, and as
    expected. The pace comes from the record's earlier jobs of the same
    trainer, workers and data; where there is none, from a few units that
    are trained on a gang started for it. Nothing is recorded.
    """
    from contextlib import nullcontext, redirect_stdout

    from hpo.cli.terminal import show_json, terminal
    from hpo.job_file import read_job
    from hpo.observers import show_plan
    from hpo.tuner import HyperparameterTuner

    overrides = [*(set_ or []), *([f"store={json.dumps(store)}"] if store is not None else [])]
    spec = read_job(job, overrides, allow_code=allow_code)
    out = terminal(stderr=as_json)
    tuner = HyperparameterTuner(**spec.arguments(), console=out, verbose=verbose)
    try:
        # Whatever else prints, Ray for one, would stand in the way of the JSON.
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            found = tuner.forecast(spec.data.open(data_dir))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if as_json:
        show_json({"plan": tuner.plan().to_json(), "forecast": found.to_json()})
        return
    out.print(show_plan(tuner.plan()))
    out.print(found.text, soft_wrap=True, markup=False)
