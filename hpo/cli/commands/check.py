"""The command that tries one trial of a job before the job is paid for."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from hpo.cli.options import AllowCode, AsJson, DataDir, Overrides, StoreUrl, Verbose, overrides


def check(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    data_dir: DataDir = None,
    set_: Overrides = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Try one trial of a job: train it for two units, stop it, start it again.

    Says which line of output gave which metric, how units were counted,
    whether the trial went on from its checkpoint, what its model folder
    holds, which processes did not end, and what a trial costs. The
    configuration is the middle of the ranges. Nothing is recorded. The
    exit code is 1 where a problem was found.
    """
    from hpo.cli.terminal import show, show_json, terminal, working
    from hpo.cli.views import trial_check_lines
    from hpo.job_file import TrainingSpec, read_any
    from hpo.jobs import check_pinned, check_trial
    from hpo.text import printer
    from hpo.training import TrainingJob
    from hpo.tuner import HyperparameterTuner

    spec = read_any(job, overrides(set_, store=store), allow_code=allow_code)
    check_pinned()
    out = terminal(stderr=as_json)
    make: Any = TrainingJob.of if isinstance(spec, TrainingSpec) else HyperparameterTuner
    settings = make(**spec.arguments(), console=out, verbose=verbose).settings
    with working(as_json=as_json):
        found = check_trial(settings, spec.channels(data_dir), notify=printer(out), verbose=verbose)
    if as_json:
        show_json(found.to_json())
    else:
        show(*trial_check_lines(found))
    sys.exit(1 if found.problems else 0)
