"""The command that shows what a job's driver printed, wherever it runs."""

from __future__ import annotations

import difflib
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TextIO

import typer

from hpo.cli.options import Address, JobName, StoreUrl
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from hpo.store import JobRow, Store, TrialRow
    from hpo.submission import JobsServer

POLL_SECONDS = 0.3
SUMMARY_SECONDS = 10.0


def logs(
    name: JobName,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what it prints, until the job ends.")
    ] = False,
    trial: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="ID", help="The output of the worker that failed this trial, instead."),
    ] = None,
    tail: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=0, metavar="N", help="Begin with the last N lines."),
    ] = None,
    address: Address = None,
    store: StoreUrl = None,
) -> None:
    """Show what a job's driver printed.

    Of a job that was submitted to a cluster it comes from Ray, of one in
    the background of this machine from its file. A driver in the
    foreground prints on its own terminal, and keeps nothing.
    """
    from hpo.store import Store

    with Store(store) as opened:
        if trial is not None:
            _print(_tail(_worker_output(opened, name, trial), tail))
            return
        try:
            job: JobRow | None = opened.job(name)
        except ConfigurationError:
            if address is None:
                raise
            job = None  # It may write to a record that is not to be reached from here.
        submission = name if job is None else job.driver.get("submission_id", "")
        if submission:
            from hpo.submission import JobsServer

            server = JobsServer(address or (job and job.driver.get("address")) or None)
            _print(_of_ray(server, submission, tail, follow=follow))
        elif job is not None:
            file = _own_file(job)
            _print(_of_file(file, tail, (lambda: _goes_on(opened, name)) if follow else None))


def _print(pieces: Iterator[str]) -> None:
    from hpo.cli.terminal import terminal

    out = terminal()
    try:
        for piece in pieces:
            out.out(piece, end="", highlight=False)
            if out.quiet:  # Whoever read it, `head` say, has enough.
                return
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _of_ray(server: JobsServer, submission: str, tail: int | None, *, follow: bool) -> Iterator[str]:
    before = server.log(submission)
    yield from _tail(before.splitlines(keepends=True), tail)
    seen = len(before)
    for piece in server.follow(submission) if follow else ():  # Ray begins with all that was printed so far.
        yield piece[seen:]
        seen = max(0, seen - len(piece))


def _of_file(file: Path, tail: int | None, goes_on: Callable[[], bool] | None) -> Iterator[str]:
    """The lines of a file, and what is written to it as long as `goes_on`."""
    with _opened(file) as stream:
        yield from _tail(stream, tail)
        while goes_on is not None:
            more = goes_on()  # Asked first, so that what is written before the end is read.
            yield from stream
            if not more:
                return
            time.sleep(POLL_SECONDS)


def _tail(lines: Iterable[str], count: int | None) -> Iterator[str]:
    yield from lines if count is None else deque(lines, maxlen=count)


def _goes_on(store: Store, name: str) -> bool:
    """Whether more is to be expected: a driver prints its summary behind the job's end."""
    from hpo.lease import is_dead

    job, now = store.job(name), time.time()
    if job.status in ("InProgress", "Stopping"):
        return not job.lost(now)
    return now - (job.ended_at or 0.0) < SUMMARY_SECONDS and not is_dead(job.driver)


def _own_file(job: JobRow) -> Path:
    """The log of a job in the background of this machine.

    Raises:
        ConfigurationError: there is none, or it is on another machine.
    """
    file, host = job.driver.get("log"), job.driver.get("host", "an unknown machine")
    if not file:
        raise ConfigurationError(
            f"nothing of what {job.name!r} printed was kept: its driver ran in the foreground, on {host}; look at what "
            f"it found with: hpo describe {job.name}"
        )
    if host != socket.gethostname():
        raise ConfigurationError(f"the log of {job.name!r} is {file} on {host}; run hpo logs there")
    return Path(file)


def _worker_output(store: Store, name: str, trial_id: str) -> Iterator[str]:
    """The output of the worker that failed a trial.

    Raises:
        ConfigurationError: there is no such trial, none is recorded of it, or it is not to be read from here.
    """
    trial = _trial(store, name, trial_id)
    if not trial.logs:
        raise ConfigurationError(
            f"trial {trial_id!r} is {trial.status}, and where its workers' output is stands in the record of failed "
            "trials alone; Ray's dashboard, or `ray logs cluster`, shows that of all workers"
        )
    address, _, file = trial.logs.partition(":")
    if not Path(file).is_file():
        raise ConfigurationError(
            f"the output of the worker that failed {trial_id!r} is, or was, {file} on {address}; look there"
        )
    with _opened(Path(file)) as stream:
        yield from stream


def _trial(store: Store, name: str, trial_id: str) -> TrialRow:
    trials = {trial.trial_id: trial for trial in store.trials(name)}
    if trial_id in trials:
        return trials[trial_id]
    near = difflib.get_close_matches(trial_id, trials, n=1)
    raise ConfigurationError(f"job {name!r} has no trial {trial_id!r}" + (f"; {near[0]!r}?" if near else ""))


def _opened(file: Path) -> TextIO:
    try:
        return file.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"the log {file} cannot be read: {error.strerror or error}") from error
