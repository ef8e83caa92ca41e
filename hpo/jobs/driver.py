"""A job's driver: takes the job's row in the record, and runs it from there to its end."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from hpo.forecasts import Forecast, forecast_from
from hpo.forks import check_keeps_trials
from hpo.jobs import launch
from hpo.jobs.build import goal_for, opened, outlook_for, search_for
from hpo.jobs.continuity import continued, warning_of
from hpo.jobs.files import check_same, open_inputs
from hpo.jobs.launch import JobsServer, check_pinned
from hpo.jobs.named_code import check_record
from hpo.jobs.raising import RAISED, acts_of, changes, check_current, raised, said
from hpo.jobs.replay import used_before
from hpo.jobs.resuming import how_to_resume
from hpo.jobs.run import Ended, Job
from hpo.jobs.settings import JobSettings
from hpo.jobs.stop_signals import EXIT_CODES, LOOK_SECONDS, Interrupts
from hpo.observers import Callback, how_to_look, show_code, show_summary, show_training, show_training_code, watcher_for
from hpo.record import LONGEST_WAIT, LOST_AFTER, JobRow, Store, holder_of, is_away, is_held, refusal
from hpo.search import INTERRUPTED
from hpo.strategies import Prepared, Task, observations_in, prepared
from hpo.text import parts_text, printer
from trainers import steady
from trainers.channels import Channel
from trainers.errors import ConfigurationError, RecordLostError, RecordMissingError, WarmbandError


def apart(settings: JobSettings, callbacks: Sequence[Callback]) -> JobsServer | None:
    """Where a job goes that another process runs: a cluster, or None for this machine.

    Raises:
        ConfigurationError: something of the job cannot follow it there.
    """
    if bound := settings.search_strategy.bound:
        raise ConfigurationError(f"{bound}, or call fit(wait=True)")
    launch.check_can_follow(settings.code(), callbacks)
    return launch.cluster_for(settings.estimator)


def resume_apart(
    store: str | None,
    name: str,
    settings: JobSettings,
    say: Callable[[str], None],
    *,
    inputs: Mapping[str, Any] | None,
    callbacks: Sequence[Callback],
    allowed: Collection[str],
    limits: Mapping[str, float],
) -> None:
    """Has another process go on with a job, and returns once that has taken it; arguments are those of `drive`.

    Raises:
        ConfigurationError: the job cannot go on, or not without what only this process has.
        WarmbandError: the driver does not start.
    """
    if inputs is not None:
        raise ConfigurationError(
            "inputs cannot follow a job to another process, which resume(wait=False) needs; call "
            "resume(inputs=..., wait=True)"
        )
    server = apart(settings, callbacks)
    check_resumable(store, name, limits)
    launch.start_apart(name, store, server, say, resume=True, allowed=allowed, limits=limits)


def drive(
    store: str | None,
    name: str,
    *,
    console: Console,
    verbose: bool = False,
    resume: bool = False,
    inputs: Mapping[str, Any] | None = None,
    data_dir: str | None = None,
    callbacks: Sequence[Callback] = (),
    allowed: Container[str] = (),
    limits: Mapping[str, Any] | None = None,
) -> Ended:
    """Runs a job of the record to its end; what the record already holds of it is not done again.

    Args:
        store: database URL of the record; None is `WARMBAND_STORE`, or a SQLite file in `WARMBAND_HOME`.
        name: the job's; its row has all that it is made with.
        console: where progress and summary are printed.
        verbose: also show Ray's own logs and what workers print.
        resume: also where it has ended as Stopped or Failed, or was asked to stop.
        inputs: its channels, where the record cannot open them: the rows have to be the same.
        data_dir: where named datasets lie, where that is not where they were.
        callbacks: the user's own code, which no record keeps.
        allowed: the code that the record may name, each as "module:name"; it is imported here.
        limits: larger ones that it is resumed under, by name; None leaves them as they are.

    Returns:
        How it ended, now or, where it was Completed already, before.

    Raises:
        ConfigurationError: there is no such job, it has ended and `resume` is False, it names code that is not
            allowed, it cannot be made again here, or its limits cannot be raised to these.
        LeaseError: another process drives it, and lives; one that is silent is waited for. Or another raised its
            limits meanwhile.
        DataError: its data cannot be opened from here, or has changed.
        WarmbandError: the job could not be run.
        KeyboardInterrupt: a second Ctrl-C.
    """
    say = printer(console)
    with Store(store) as reader:
        wait_for_lease(reader, name, say)
        job = recorded = reader.job(name)
        begun = bool(reader.trials(name))
        if limits:
            check_record(job.spec, allowed, name)
            job = raised_now(reader, job, limits)
    if job.status == "Completed":
        say(f"{name} is Completed: there is nothing left to run")
        return Ended(status=job.status, reason=job.reason, summary=job.summary)
    if job.status in ("Stopped", "Failed") and not resume:
        raise ConfigurationError(f"job {name!r} is {job.status}: {job.reason}; to go on with it: hpo resume {name}")
    check_record(job.spec, allowed, name)
    settings = JobSettings.of(job, allow_code=True)
    channels = opened(settings, open_inputs(job.spec["inputs"], data_dir=data_dir) if inputs is None else inputs)
    if inputs is not None:
        check_same(job.spec["inputs"], channels)
    other: list[str] = []
    if begun:
        job, other = continued(job, steady.now())
    forecast = _forecast(settings, job, store)
    strategy = made_ready(settings, job)
    resume_it = how_to_resume(name, job.spec, store, training=settings.is_training)
    with Interrupts(say, resume_it) as interrupts:
        taken_up = replace(job, status="InProgress", reason="", ended_at=None) if resume else job
        changed = changes(recorded, taken_up)
        if resume or changed:

            def current(now: JobRow) -> dict[str, Any]:
                check_current(now, recorded.spec.get(RAISED, ()))  # Opening its data may have taken long.
                return changes(recorded, taken_up, now)  # A stop that was asked for was for the driver before.

            with Store(store) as reader:
                reader.update_job(name, current, acts=acts_of(recorded, job) if resume else None)
            if job.spec.get(RAISED) != recorded.spec.get(RAISED):
                say(f"{name}: {said(job.spec[RAISED][-1])}")
        return run(
            settings,
            job,
            strategy,
            channels,
            forecast,
            interrupts,
            store=store,
            callbacks=callbacks,
            console=console,
            verbose=verbose,
            warnings=[warning_of(other)] if other else [],
        )


def check_resumable(store: str | None, name: str, limits: Mapping[str, Any]) -> None:
    """Refuses to have another process resume a job, where it would refuse.

    The limits are raised by that process, once it has taken the job up: one that refuses to, for want of data say,
    leaves the record as it is.

    Args:
        store: as `drive` takes it.
        name: the job's.
        limits: larger ones, by name.

    Raises:
        ConfigurationError: its limits cannot be raised to these, or there is nothing to go on with.
        LeaseError: a process drives it.
    """
    with Store(store) as reader:
        job = reader.job(name)
        if is_held(job):
            raise refusal(job, "resumed")
        if (raised_now(reader, job, limits) if limits else job).status == "Completed":
            raise ConfigurationError(f"job {name!r} is Completed; there is nothing left to run")


def raised_now(store: Store, job: JobRow, limits: Mapping[str, Any]) -> JobRow:
    """A job's row under larger limits than those that it has used up, as `hpo.jobs.raising.raised` has it."""
    before = used_before(job, store.ledger(job.name), job.held_until)
    trials = store.trials(job.name)
    if "max_jobs" in limits and any(trial.replaces for trial in trials):
        raise ConfigurationError(
            f"max_jobs is {limits['max_jobs']}, and the population of job {job.name!r} has exchanged checkpoints "
            "already: who comes later would not be of it; leave max_jobs out, or begin another job"
        )
    begun = sum(trial.number >= 0 for trial in trials)
    return raised(job, limits, before=before, begun=begun, now=steady.now())


def wait_for_store(store: str | None, name: str, say: Callable[[str], None]) -> None:
    """Waits until a record's database answers, for as long as a driver waits for it later on.

    Args:
        store: as `drive` takes it.
        name: the job that is in the record.
        say: prints what is waited for.

    Raises:
        ConfigurationError: it does not answer, or refuses.
        RecordMissingError: the file of a record in SQLite is not there.
    """
    deadline = time.monotonic() + LONGEST_WAIT
    told = False
    while True:
        try:
            Store(store, make=False).close()
            return
        except RecordMissingError as error:
            raise RecordMissingError(f"{error}; then run: hpo resume {name}") from None
        except ConfigurationError as error:
            if not is_away(error) or time.monotonic() > deadline:
                raise
            if not told:
                say(f"waiting up to {LONGEST_WAIT:.0f} s: {error}")
                told = True
        time.sleep(LOOK_SECONDS)


def wait_for_lease(
    store: Store, name: str, say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Waits until nobody holds a job's lease; a driver that died on another machine holds it for `LOST_AFTER` seconds.

    Args:
        store: the record.
        name: the job's.
        say: prints what is waited for.
        sleep: waits so many seconds.

    Raises:
        LeaseError: its driver is alive.
    """
    first = store.job(name)
    if not is_held(first):
        return
    most = LOST_AFTER - max(0.0, first.silent)
    say(
        f"{holder_of(first.driver)} drives {name}: waiting up to {most:.0f} s for word of it, or for its "
        "lease to expire"
    )
    while is_held(job := store.job(name)):
        if job.heartbeat > first.heartbeat or job.lease != first.lease:
            raise refusal(job, "driven from here")
        sleep(LOOK_SECONDS)


def made_ready(settings: JobSettings, job: JobRow) -> Prepared:
    """A job's strategy, ready to begin or to decide anew.

    Args:
        settings: what its row says.
        job: its row.

    Raises:
        ConfigurationError: it cannot be made, or not here.
    """
    search = search_for(settings, job.name, job.spec["random_seed"])
    task = Task(
        plan=settings.plan(),
        ranges=settings.ranges,
        metric=search.metric,
        mode=search.mode,
        seed=search.seed,
        parallel=search.max_parallel_jobs,
        length=search.length,
        static_names=tuple(search.static),
        fixed_names=search.fixed_names,
        in_process=settings.estimator.in_hand,
        earlier=observations_in(job.spec),
    )
    made = prepared(settings.search_strategy, task)
    check_keeps_trials(settings.takes_effect, made.scheduler)
    return made


def run(
    settings: JobSettings,
    job: JobRow,
    strategy: Prepared,
    channels: Mapping[str, Channel],
    forecast: Forecast | None,
    interrupts: Interrupts,
    *,
    store: str | None,
    callbacks: Sequence[Callback],
    console: Console,
    verbose: bool,
    copied: bool = True,
    warnings: Sequence[str] = (),
) -> Ended:
    """Runs a job in this process and prints what it came to.

    Args:
        settings: what the job's row says.
        job: its row.
        strategy: as `made_ready` gives it.
        channels: as `hpo.jobs.build.opened` gives them.
        forecast: what earlier jobs say that it takes.
        interrupts: in whose block it runs, and says its last words.
        store: as `drive` takes it.
        callbacks: as `drive` takes them.
        console: as `drive` takes it.
        verbose: as `drive` takes it.
        copied: the copies of its inputs that the row speaks of are there; False makes them while the first gang starts.
        warnings: printed, and kept in the job's log, before its first trial.

    Raises:
        WarmbandError: the job could not be run.
        KeyboardInterrupt: a second Ctrl-C.
    """
    search = search_for(settings, job.name, job.spec["random_seed"])
    ended = Job(
        search=search,
        strategy=strategy,
        ranges=settings.ranges,
        estimator=settings.estimator,
        channels=channels,
        recorded={} if copied else job.spec["inputs"],
        store=store,
        watcher=watcher_for(console, goal_for(settings, job.name, interrupts.resume)),
        forecast=forecast,
        callbacks=callbacks,
        num_to_keep=settings.options["num_to_keep"],
        priority=settings.options["priority"],
        notices=settings.notices or {},
        raised=job.spec.get(RAISED, ()),
        warnings=warnings,
        notify=printer(console),
        interrupts=interrupts,
        verbose=verbose,
    ).run()
    _show_end(settings, job, ended, console, store, verbose=verbose)
    return ended


def _show_end(
    settings: JobSettings, job: JobRow, ended: Ended, console: Console, store: str | None, *, verbose: bool
) -> None:
    """Print the summary of a job that has ended, and with `verbose` the code that uses what it found."""
    summary, once = {**ended.summary, "reason": ended.reason}, settings.is_training
    resume = ""
    if ended.status == "Stopped":
        resume = how_to_resume(job.name, job.spec, store, training=once, reason=ended.reason)
    if once:
        console.print(show_training(job.name, ended.status, summary, resume=resume, verbose=verbose))
    else:
        metric, search = settings.objective_metric_name, parts_text(job.spec)
        console.print(
            show_summary(job.name, ended.status, metric, summary, search=search, resume=resume, verbose=verbose)
        )
    if verbose:
        code = (
            show_training_code(job.name, summary, store)
            if once
            else show_code(job.name, summary, store, strategy=job.spec["strategy"])
        )
        console.print(code, soft_wrap=True)
        printer(console)(how_to_look(job.name))


def _forecast(settings: JobSettings, job: JobRow, store: str | None) -> Forecast | None:
    """The forecast from earlier jobs."""
    search = search_for(settings, job.name, job.spec["random_seed"])
    with Store(store) as reader:
        return forecast_from(reader, job.spec, outlook_for(settings, search))


def exit_code(ended: Ended) -> int:
    """The exit code of a process that ran a job, as of the `hpo` command."""
    return 1 if ended.status == "Failed" else EXIT_CODES.get(ended.reason, 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a job of the record, whose database `WARMBAND_STORE` names.

    Args:
        arguments: of the command line.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m hpo.jobs.driver", description=main.__doc__.partition("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("name", help="the job's name")
    parser.add_argument("--resume", action="store_true", help="also if it is Stopped or Failed")
    parser.add_argument("--verbose", action="store_true", help="show Ray's own logs too, and what workers print")
    parser.add_argument(
        "--allow-code", action="append", default=[], metavar="MODULE:NAME", help="code that the job may name"
    )
    parser.add_argument("--limits", type=json.loads, metavar="JSON", help="larger limits to resume it under, by name")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        check_pinned()
        wait_for_store(None, options.name, printer(console))
        ended = drive(
            None,
            options.name,
            console=console,
            verbose=options.verbose,
            resume=options.resume,
            allowed=options.allow_code,
            limits=options.limits,
        )
        return exit_code(ended)
    except KeyboardInterrupt:
        return EXIT_CODES[INTERRUPTED]
    except WarmbandError as error:
        printer(Console(stderr=True))(f"error: {error}", style="red")
        again = is_away(error) or isinstance(error, RecordLostError)  # Another start may go on.
        return 2 if isinstance(error, ValueError) and not again else 1


if __name__ == "__main__":
    sys.exit(main())
