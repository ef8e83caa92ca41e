"""The command that resumes a job that was stopped, or whose driver died."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from hpo.cli.options import AllowCode, AsJson, DataDir, JobName, StoreUrl, Verbose


def resume(
    name: JobName,
    set_: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--set",
            metavar="LIMIT=VALUE",
            help="A larger limit, for good: tuning.max_jobs, tuning.max_runtime_in_seconds, tuning.max_wait or "
            "cost.max_cost; may be repeated.",
        ),
    ] = None,
    data_dir: DataDir = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Go on with a job whose driver died, or that was stopped, here.

    Trials that have ended are not run again, others go on from their last
    rung, and the result is that of a job that was never interrupted. A job
    that another process drives is refused; a driver that was silent is
    waited for until its hold on the job expires, a minute at most.

    A job that a limit stopped stops again at once, unless --set raises
    it. With a larger tuning.max_jobs a job that is Completed goes on, too:
    its trials and rungs stay, and more come behind them.
    """
    from hpo.cli.terminal import show_json, terminal, working
    from hpo.job_file import limits_of
    from hpo.jobs import check_allowed, drive, exit_code, in_record, look_here_too
    from hpo.record import Store
    from hpo.sagemaker import describe_any

    limits = limits_of(set_ or ())
    with Store(store) as opened:
        named = in_record(opened.job(name).spec, here=True)
    check_allowed(named, allow_code, f"job {name!r}")
    if named:
        look_here_too()
    allowed = [code.name for code in named]
    with working(as_json=as_json):
        ended = drive(
            store,
            name,
            console=terminal(stderr=as_json),
            verbose=verbose,
            resume=True,
            data_dir=data_dir,
            allowed=allowed,
            limits=limits,
        )
    if as_json:
        with Store(store) as opened:
            show_json(describe_any(opened, name))
    if code := exit_code(ended):
        raise typer.Exit(code)
