"""The command that shows the output of a job's driver, from any machine."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TextIO

import typer

from hpo.cli.options import Address, JobName, StoreUrl
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError, WarmbandError
from trainers.gangs import found

if TYPE_CHECKING:
    from hpo.jobs import JobsServer
    from hpo.record import JobRow, Store, TrialRow

POLL_SECONDS, RECORD_SECONDS = 0.3, 1.0
SUMMARY_SECONDS = 10.0


def logs(
    name: JobName,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what it prints, until the job ends.")
    ] = False,
    trial: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="ID", help="The output of this trial's program, or of the worker that failed it."),
    ] = None,
    worker: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=0, metavar="N", help="With --trial, the program's output on this worker, counted from 0."),
    ] = None,
    tail: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=0, metavar="N", help="Begin with the last N lines."),
    ] = None,
    address: Address = None,
    store: StoreUrl = None,
) -> None:
    """Show the output of a job's driver, or of a trial.

    For a job on a cluster it comes from Ray, for one in the background of
    this machine from its file. Where neither can be reached from here,
    and for a driver in the foreground, it comes from the record, which
    keeps a line an event.

    With --trial it is what the trial's program prints, on this machine;
    of trials without a program, that of the worker that failed them.
    """
    from hpo.record import Store

    if worker is not None and trial is None:
        raise ConfigurationError(f"--worker is {worker}, and there is no --trial; give --trial ID too")
    with Store(store) as opened:
        if trial is not None:
            trains = (lambda: _trains(opened, name, trial)) if follow else None
            _print(_of_file(_trial_file(opened, name, trial, worker, trains), tail, trains))
            return
        try:
            job: JobRow | None = opened.job(name)
        except ConfigurationError:
            from hpo.jobs import ADDRESS_VARIABLES

            if address is None and not any(map(os.environ.get, ADDRESS_VARIABLES)):
                raise
            job = None  # It may write to a record that is not to be reached from here.
        goes_on = (lambda: _goes_on(opened, name)) if follow else None
        submission = name if job is None else job.driver.get("submission_id", "")
        if submission and (server := _server(address, job)) is not None:
            _print(_of_ray(server, submission, tail, follow=follow))
        elif job is not None and (file := _own_file(job)) is not None:
            _print(_of_file(file, tail, goes_on))
        else:
            _print(_of_record(opened, name, tail, goes_on))


def _print(pieces: Iterator[str]) -> None:
    from hpo.cli.terminal import terminal, working

    out = terminal()
    with working():
        for piece in pieces:
            out.out(piece, end="", highlight=False)
            if out.quiet:  # The reader, `head` say, has enough.
                return


def _of_ray(server: JobsServer, submission: str, tail: int | None, *, follow: bool) -> Iterator[str]:
    before = server.log(submission)
    yield from _tail(before.splitlines(keepends=True), tail)
    seen = len(before)
    for piece in server.follow(submission) if follow else ():  # Ray begins with all that was printed so far.
        yield piece[seen:]
        seen = max(0, seen - len(piece))


def _of_file(file: Path, tail: int | None, goes_on: Callable[[], bool] | None) -> Iterator[str]:
    """The lines of a file, and those written to it as long as `goes_on`."""
    with _opened(file) as stream:
        yield from _tail(stream, tail)
        while goes_on is not None:
            more = goes_on()  # Asked first, so that lines written before the end are read.
            yield from stream
            if not more:
                return
            time.sleep(POLL_SECONDS)


def _of_record(store: Store, name: str, tail: int | None, goes_on: Callable[[], bool] | None) -> Iterator[str]:
    """The lines of the record, and those that come as long as `goes_on`."""
    rows = store.lines(name)
    if not rows and goes_on is None:
        raise ConfigurationError(
            f"the record keeps nothing of what {name!r} said: an older Warmband ran it, or it has not begun; look at "
            f"what it found with: hpo describe {name}"
        )
    yield from _tail([f"{row.text}\n" for row in rows], tail)
    seen = {row.id for row in rows}
    while goes_on is not None:
        more = goes_on()
        for row in store.lines(name):
            if row.id not in seen:
                seen.add(row.id)
                yield f"{row.text}\n"
        if not more:
            return
        time.sleep(RECORD_SECONDS)


def _tail(lines: Iterable[str], count: int | None) -> Iterator[str]:
    yield from lines if count is None else deque(lines, maxlen=count)


def _goes_on(store: Store, name: str) -> bool:
    """Whether more is to be expected: a driver prints its summary behind the job's end."""
    from hpo.record import is_dead

    job = store.job(name)
    if job.status in ("InProgress", "Stopping"):
        return not job.lost
    return job.now - (job.ended_at or 0.0) < SUMMARY_SECONDS and not is_dead(job.driver)


def _server(address: str | None, job: JobRow | None) -> JobsServer | None:
    """The jobs server that a job was submitted to; None where it is gone and the record has to do.

    Raises:
        ConfigurationError: it was named, or nothing but it knows the job, and it cannot be reached.
    """
    from hpo.jobs import JobsServer

    try:
        return JobsServer(address or (job and job.driver.get("address")) or None)
    except WarmbandError:
        if address is not None or job is None:
            raise
        return None


def _own_file(job: JobRow) -> Path | None:
    """The log of a job in the background of this machine, if it is one and has it still."""
    file = Path(job.driver.get("log") or os.devnull)
    return file if job.driver.get("host") == socket.gethostname() and file.is_file() else None


def _trial_file(store: Store, name: str, trial_id: str, worker: int | None, trains: Callable[[], bool] | None) -> Path:
    """The file of a trial's own output, or of the output of the worker that failed it; waits for it while it `trains`.

    Raises:
        ConfigurationError: there is no such trial, none is recorded of it, or it is not to be read from here.
    """
    while True:
        trial = _trial(store, name, trial_id)
        own = _program_file(trial, worker)
        if own.is_file():
            return own
        if trains is None or not trains():
            raise _unreadable(store, name, trial, worker, own)
        time.sleep(RECORD_SECONDS)


def _program_file(trial: TrialRow, worker: int | None) -> Path:
    """The file that a trial's program prints to, where it has one: on this worker, or that its record names."""
    from trainers.script import logs_folder, trial_log

    if worker is None and trial.logs:
        return found(trial.logs)[1]
    named = found(trial.logs)[1] if trial.logs.endswith(".log") else None
    if named is None:
        return trial_log(logs_folder(), trial.job, trial.trial_id, worker or 0)
    return trial_log(str(named.parents[1]), named.parent.name, trial.trial_id, worker or 0)


def _unreadable(store: Store, name: str, trial: TrialRow, worker: int | None, own: Path) -> ConfigurationError:
    """The error about output that is not on this machine, or nowhere: it says where to look."""
    estimator = store.job(name).spec["estimator"]
    why = f"hpo trials {name} --tracebacks" if trial.status == "Failed" else f"hpo trials {name}"
    if worker is not None or (not trial.logs and "entry_point" in estimator.get("options", {})):
        begun = "" if trial.started_at else ", which has not begun"
        return ConfigurationError(
            f"trial {trial.trial_id!r} is {trial.status}{begun}: its program's output on worker {worker or 0} is, or "
            f"will be, {own} on the machine that trains it, and not on this one; look there"
        )
    if not trial.logs and estimator["scaling"].get("num_workers") == 0:
        return ConfigurationError(
            f"trial {trial.trial_id!r} is {trial.status}, and had no worker: its job trains in its own process, whose "
            f"output goes where that runs; look at: {why}"
        )
    if not trial.logs and trial.status == "Failed":
        return ConfigurationError(
            f"trial {trial.trial_id!r} is Failed, and no worker said where its output is; Ray's dashboard, or `ray "
            f"logs cluster`, shows that of all workers, and why it failed: {why}"
        )
    if not trial.logs:
        return ConfigurationError(
            f"trial {trial.trial_id!r} is {trial.status}, and where its workers' output is stands in the record of "
            "failed trials alone; Ray's dashboard, or `ray logs cluster`, shows that of all workers"
        )
    address, file = found(trial.logs)
    return ConfigurationError(
        f"the output of the worker that served {trial.trial_id!r} is, or was, {file} on {address}; look there"
    )


def _trains(store: Store, name: str, trial_id: str) -> bool:
    """Whether more output of a trial is to be expected."""
    return _trial(store, name, trial_id).ended_at is None and _goes_on(store, name)


def _trial(store: Store, name: str, trial_id: str) -> TrialRow:
    trials = {trial.trial_id: trial for trial in store.trials(name)}
    if trial_id in trials:
        return trials[trial_id]
    raise ConfigurationError(f"job {name!r} has no trial {trial_id!r}{did_you_mean(trial_id, trials)}")


def _opened(file: Path) -> TextIO:
    try:
        return file.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"the log {file} cannot be read: {error.strerror or error}") from error
