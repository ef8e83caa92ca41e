"""Commands that list, describe, stop and delete jobs of the record, and add trials to them or stop some."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from hpo.cli.options import AsJson, JobName, StoreUrl
from hpo.cli.shell_completion import job_names

if TYPE_CHECKING:
    from hpo.record import Store

POLL_SECONDS = 0.5


class Kind(StrEnum):
    """Kinds of jobs."""

    TUNING = "tuning"
    TRAINING = "training"


def jobs(
    kind: Annotated[
        Optional[Kind],  # noqa: UP045
        typer.Option(help="Tuning jobs alone, or single trainings alone."),
    ] = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs, newest first: tuning jobs, and single trainings.

    best is the objective of the best trial so far, worker-s are billed
    worker-seconds. A wide terminal also shows who owns a job and where its
    driver runs, or last ran.
    """
    from hpo.cli.terminal import show, show_json, terminal
    from hpo.cli.views import jobs_table
    from hpo.record import Store
    from hpo.sagemaker import readable_overviews

    with Store(store) as opened:
        found, malformed = readable_overviews(opened)
        rows = [row for row in found if kind is None or row.kind == kind]
        url = opened.url
    if malformed:
        names = ", ".join(malformed)
        typer.echo(f"warning: not listed, since their rows cannot be read: {names}; look with: hpo db check", err=True)
    if as_json:
        show_json([job.summary() for job in rows])
    elif rows:
        show(jobs_table(rows, terminal().width))
    else:
        which = f"{kind.value} jobs" if kind else "jobs"
        show(f"No {which} in {url}. To run the first: hpo init, then hpo tune job.yaml")


def describe(name: JobName, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show a job: what it found, what it used, and what it was made with.

    Below stands the code that uses what it found: its configuration for a
    job file, for Python and by hand, and the line that loads its model.

    With --json, the response of SageMaker's
    DescribeHyperParameterTuningJob, of a single training that of
    DescribeTrainingJob, and a Summary in it.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.cli.views import code_of, job_page
    from hpo.record import Store
    from hpo.sagemaker import Snapshot, describe_any

    with Store(store) as opened:
        if as_json:
            show_json(describe_any(opened, name))
            return
        snapshot = Snapshot.of(opened, opened.job(name))
    show(job_page(snapshot))
    if code := code_of(snapshot, store):
        show("", code)


def trials(
    name: JobName,
    csv: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--csv", metavar="FILE", help="Write all columns to FILE, in the order of suggestion."),
    ] = None,
    tracebacks: Annotated[bool, typer.Option("--tracebacks", help="Show where failed trials failed.")] = False,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List a job's trials, the best first.

    Why trials failed, or diverged, stands below the table.
    """
    from hpo.cli.terminal import show, show_json, terminal
    from hpo.cli.views import failures, trials_table, waiting_lines
    from hpo.record import Store
    from hpo.sagemaker import Snapshot
    from hpo.text import count

    with Store(store) as opened:
        snapshot = Snapshot.of(opened, opened.job(name))
    if csv is not None:
        _write_csv(name, csv, store)
    if as_json:
        show_json(snapshot.trial_summaries())
    elif csv is not None:
        show(f"Wrote {count(len(snapshot.trials), 'trial')} to {csv}")
    elif not snapshot.trials:
        show(f"{name} has no trials yet: it is {snapshot.status}.", *waiting_lines(snapshot))
    else:
        show(trials_table(snapshot, terminal().width), *waiting_lines(snapshot))
        failed = failures(snapshot.trials, tracebacks=tracebacks)
        if failed:
            show("", failed)


def add_trial(
    name: JobName,
    set_: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A hyperparameter and its value, as in a job file; may be repeated."
        ),
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Give a job that runs the values of a trial to try.

    The next trial that is suggested takes them, in whatever process the job
    runs; what is not set is the searcher's. It takes a place of max_jobs,
    behind other values that were given before. A job that was stopped takes
    them when it is resumed.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.cli.views import added_lines
    from hpo.job_file import point_of
    from hpo.record import Store
    from hpo.sagemaker import add_trial as add

    point = point_of(set_)
    with Store(store) as opened:
        added = add(opened, name, point)
    if as_json:
        show_json(added.to_json())
    else:
        show(*added_lines(added))


def stop_trial(
    name: JobName,
    trial: Annotated[str, typer.Argument(metavar="TRIAL", help="The trial's name.")],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Stop one trial of a job that runs; the job goes on without it.

    The trial ends at its next report, in whatever process the job runs, and
    what it found is kept. Its rung is cut among the others, and no trial is
    suggested in its place. A job that is resumed has it stopped again where
    it was.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.cli.views import stopped_lines
    from hpo.record import Store
    from hpo.sagemaker import stop_trial as stop

    with Store(store) as opened:
        stopped = stop(opened, name, trial)
    if as_json:
        show_json(stopped.to_json())
    else:
        show(*stopped_lines(stopped))


def acts(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(
            metavar="[NAME]", help="The job's name; without it, those on all jobs.", autocompletion=job_names
        ),
    ] = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """List what persons did to a job, or to all: who, when, and how.

    It outlives the jobs: that one was created and deleted stays in the
    record, and what was done to it in between.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.cli.views import act_lines
    from hpo.record import Store
    from hpo.sagemaker import describe_act

    with Store(store) as opened:
        found = opened.acts(name)
        url = opened.url
    if as_json:
        show_json([describe_act(act) for act in found])
    else:
        show(*(act_lines(found, named=name is None) or [f"Nobody has done anything yet in {url}"]))


def stop(
    name: JobName,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for its end.")
    ] = 60.0,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Ask a running job to stop, and wait for its end.

    Its trials end at their next report, with a checkpoint. Trials, models
    and the record are kept, and hpo resume goes on with them. A job that
    has ended is left as it is; one whose driver has died is ended here. The
    end of the wait, or Ctrl-C, leaves the job to stop by itself.
    """
    from hpo.cli.terminal import show_json, terminal
    from hpo.cli.views import value_text
    from hpo.jobs import end_abandoned
    from hpo.record import Store, run_name
    from hpo.sagemaker import Snapshot, describe_any
    from hpo.text import count

    out = terminal(stderr=as_json)
    with Store(store) as opened:
        asked = not end_abandoned(opened, name) and opened.request_stop(name)
        if asked:
            out.print(f"Asked {name} to stop; its trials end at their next report.", markup=False)
            _wait_for_end(opened, name, wait)
        if as_json:
            show_json(describe_any(opened, name))
            return
        snapshot = Snapshot.of(opened, opened.job(name))
    if asked and snapshot.status == "Stopping":
        out.print(
            f"It is still stopping after {wait:g} s, and goes on to; look with: hpo describe {name}", markup=False
        )
        return
    out.print(f"{name} is {snapshot.status}{f': {snapshot.reason}' if snapshot.reason else ''}", markup=False)
    best = snapshot.result
    result = f", the best {value_text(snapshot.objective(best))} ({run_name(best.trial_id)})" if best else ""
    out.print(f"Kept: {count(len(snapshot.trials), 'trial')}{result}; look with: hpo trials {name}", markup=False)


def delete(
    name: JobName,
    keep_files: Annotated[
        bool, typer.Option("--keep-files", help="Leave models, copies of data and the log where they are.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreUrl = None,
) -> None:
    """Delete a job that is not running: its record, and its files.

    Its files are its models, copies of data that were in memory, and the
    log of its driver. Other files in its folder stay, and are named. On a
    terminal the command asks first; where nobody can answer, in a script
    say, it wants --yes.
    """
    from hpo.cli.terminal import show
    from hpo.jobs import Files, check_over, left_text
    from hpo.record import Store
    from hpo.sagemaker import Snapshot
    from hpo.text import count
    from trainers.errors import ConfigurationError

    with Store(store) as opened:
        snapshot = Snapshot.of(opened, opened.job(name))
        check_over(snapshot.job)
        files = Files.of(snapshot.job)
        what = f"the record of {count(len(snapshot.trials), 'trial')}"
        what += "" if keep_files else f", and {files.text}"
        if not yes:
            if not (sys.stdin.isatty() and sys.stdout.isatty()):
                raise ConfigurationError(
                    f"{name} is not deleted: nobody can be asked here, as this is no terminal; to delete {what}: "
                    f"hpo delete {name} --yes{' --keep-files' if keep_files else ''}"
                )
            typer.confirm(f"Delete {name}, {snapshot.status}: {what}?", abort=True)
        left: list[str] = []
        opened.delete_job(name, (lambda: None) if keep_files else lambda: left.extend(files.remove()))
    show(f"Deleted {name}: {what}")
    if left:
        show(left_text(left))
    if keep_files:
        show(f"Kept {files.text}")


def _wait_for_end(store: Store, name: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job = store.job(name)
        if job.status != "Stopping" or job.lost:
            return
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _write_csv(name: str, file: str, store: str | None) -> None:
    from hpo.sagemaker import HyperparameterTuningJobAnalytics
    from trainers.errors import ConfigurationError

    try:
        HyperparameterTuningJobAnalytics(name, store=store).export_csv(file)
    except OSError as error:
        raise ConfigurationError(f"--csv {file!r} cannot be written: {error.strerror or error}") from error
