"""The command that forecasts the seconds and the cost of a job."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hpo.cli.options import AllowCode, AsJson, DataDir, Overrides, StoreUrl, Verbose, overrides


def forecast(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    data_dir: DataDir = None,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Say what a job would take, without running it.

    Worker-seconds, wall time and, with prices, money: at most, and as
    expected. The pace comes from the record's earlier jobs of the same
    trainer, workers and data; where there is none, from a few units that
    are trained on a gang started for it. Nothing is recorded.
    """
    from hpo.cli.terminal import show_json, terminal, working
    from hpo.job_file import TrainingSpec, read_any
    from hpo.observers import show_plan, show_training_plan
    from hpo.text import printer
    from hpo.training import TrainingJob
    from hpo.tuner import HyperparameterTuner

    spec = read_any(job, overrides(set_, store=store), allow_code=allow_code)
    out = terminal(stderr=as_json)
    once = isinstance(spec, TrainingSpec)
    make: Any = TrainingJob.of if once else HyperparameterTuner
    tuner = make(**spec.arguments(), console=out, verbose=verbose)
    with working(as_json=as_json):
        outlook = tuner.forecast(spec.channels(data_dir))
    plan = tuner.settings.plan()
    if as_json:
        show_json({"plan": plan.to_json(), "forecast": outlook.to_json()})
        return
    if tuner.settings.autotune:
        printer(out)(str(tuner.settings.autotune))
    out.print(show_training_plan(plan, tuner.settings.estimator.unit) if once else show_plan(plan))
    printer(out)(outlook.text)
