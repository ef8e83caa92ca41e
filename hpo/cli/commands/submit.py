"""The command that runs a job on a Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpo.cli.options import Address, AllowCode, AsJson, DataDir, NewName, Overrides
from trainers.errors import ConfigurationError, WarmbandError

if TYPE_CHECKING:
    from hpo.job_file import JobSpec, TrainingSpec
    from hpo.jobs import JobsServer

START_SECONDS = 60.0
POLL_SECONDS = 0.5


def submit(
    job: Annotated[str, typer.Argument(metavar="JOB.yaml", help="The job file, in the working directory.")],
    address: Address = None,
    name: NewName = None,
    set_: Overrides = None,
    data_dir: DataDir = None,
    working_dir: Annotated[
        str, typer.Option(metavar="FOLDER", help="The folder that goes along, and that the job runs in.")
    ] = ".",
    allow_code: AllowCode = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job's end, in silence.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show what the job prints, until its end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a job on a Ray cluster, through Ray's Jobs API.

    The working directory is uploaded, and hpo tune, or of a file without
    the group tuning hpo train, runs in it on the cluster, with the packages, the WARMBAND_STORE and the credentials of
    the cluster's nodes. Data has to be where they see it. The command
    returns when the job runs; the job goes on whatever becomes of this
    machine.
    """
    from hpo.cli.terminal import show_json, terminal
    from hpo.job_file import TrainingSpec, read_any
    from hpo.jobs import JobsServer, check_no_password, name_from
    from hpo.text import printer

    folder, file = _inside(job, working_dir)
    overrides = [*(set_ or []), *([f"name={name}"] if name else [])]
    spec = read_any(job, overrides, allow_code=allow_code)
    once = isinstance(spec, TrainingSpec)
    for text in (*(set_ or ()), spec.store or ""):
        check_no_password(text)
    name = spec.name or name_from(spec.trainer.type.replace("_", ""))
    _check(spec)
    command = [
        "hpo",
        "train" if once else "tune",
        file,
        *_options(set_, name, data_dir),
        *(["--allow-code"] if allow_code else []),
    ]
    out = terminal(stderr=as_json)
    say = printer(out)
    server = JobsServer(address)
    submission = server.submit(name, command, working_dir=folder, tags=spec.tags)
    say(f"Submitted {name} to {server.address}")
    try:
        shown = _wait_for_start(server, submission, say, name)
        if follow:
            for piece in server.follow(submission):
                out.out(piece, end="", highlight=False)
        elif wait:
            _wait_for_end(server, submission)
    except KeyboardInterrupt:
        say(f"\n{name} goes on; stop it with: hpo stop {name}")
        raise typer.Exit(130) from None
    if as_json:
        show_json(
            {
                "TrainingJobName" if once else "HyperParameterTuningJobName": name,
                "SubmissionId": submission,
                "Address": server.address,
            }
        )
    if follow or wait:
        _report_end(server, submission, say, name)
    elif shown:
        say(f"Look with: hpo logs {name} --follow, hpo describe {name}; stop with: hpo stop {name}")


def _inside(job: str, working_dir: str) -> tuple[Path, str]:
    """The working directory, and the job file as it is called from there.

    Raises:
        ConfigurationError: one of them is not there, or the file is elsewhere.
    """
    folder, file = Path(working_dir).resolve(), Path(job).resolve()
    if not folder.is_dir():
        raise ConfigurationError(f"--working-dir {working_dir!r} is no folder")
    if not file.is_file():
        raise ConfigurationError(f"there is no job file {job!r}; hpo init writes one")
    if folder not in file.parents:
        raise ConfigurationError(
            f"the job file {job!r} is not in the working directory {str(folder)!r}, and would not go along; give "
            f"--working-dir {str(file.parent)!r}, or move the file"
        )
    return folder, str(file.relative_to(folder))


def _check(spec: JobSpec | TrainingSpec) -> None:
    """Checks here what needs nothing of the cluster: prices, trackers' packages and training functions are there.

    Raises:
        ConfigurationError: as a tuner does.
    """
    if not spec.code():
        spec.model_copy(update={"cost": None, "trackers": None}).arguments()


def _options(set_: list[str] | None, name: str, data_dir: str | None) -> list[str]:
    """The options of hpo tune on the cluster."""
    pairs = [*(("--set", each) for each in set_ or ()), ("--set", f"name={name}")]
    return [word for pair in pairs for word in pair] + (["--data-dir", data_dir] if data_dir else [])


def _wait_for_start(server: JobsServer, submission: str, say: Callable[..., None], name: str) -> bool:
    """Says which record the job writes once it runs; returns whether it does.

    Raises:
        WarmbandError: it ended before.
    """
    from hpo.jobs import RECORD

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        reason = server.failure(submission)
        record = next((line for line in server.log(submission).splitlines() if line.startswith(RECORD)), None)
        if record is not None:
            say(f"It runs. {record}")
            if "sqlite" in record:
                say(
                    "warning: that is a file on the cluster's head, which no other machine reads, and which goes with "
                    "it; set WARMBAND_STORE to a PostgreSQL database in the environment of the cluster's nodes. Until "
                    f"then hpo logs works from here, with --address {server.address}",
                    style="yellow",
                )
            return True
        if reason:
            raise WarmbandError(f"job {name} ended before it began: {reason}")
        time.sleep(POLL_SECONDS)
    say(f"It has not begun after {START_SECONDS:g} s; look with: hpo logs {name} --address {server.address}")
    return False


def _wait_for_end(server: JobsServer, submission: str) -> None:
    while not server.look(submission).over:
        time.sleep(POLL_SECONDS)


def _report_end(server: JobsServer, submission: str, say: Callable[..., None], name: str) -> None:
    """Says how a job ended.

    Raises:
        typer.Exit: not well.
    """
    _wait_for_end(server, submission)  # Its output ends a moment before Ray says so.
    reason = server.failure(submission)
    say(f"{name} has failed: {reason}" if reason else f"{name} has ended")
    if reason:
        raise typer.Exit(1)
