"""One run of a tuning job: gangs, controller and record together, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hpo.cost import Probed
from hpo.forecasts import Forecast, Outlook, Probing, forecast_error
from hpo.jobs.checks import gang_sizes
from hpo.jobs.files import (
    CLAIMED,
    CLOSE_SECONDS,
    HURRIED_SECONDS,
    Archives,
    Checkpoints,
    Copying,
    claim,
    remove_copies,
    was_claimed,
)
from hpo.jobs.launch import driver_details
from hpo.jobs.noise import Noise
from hpo.jobs.options import NUM_TO_KEEP
from hpo.jobs.raising import RAISED, check_current
from hpo.jobs.recorder import JobRecord
from hpo.jobs.replay import Memory, gang_seconds
from hpo.jobs.stop_signals import EXIT_CODES, Interrupts, Requests
from hpo.notices import Announcer, Email, Webhook
from hpo.observers import (
    Callback,
    Callbacks,
    JobEnd,
    JobLog,
    JobStart,
    Metrics,
    Progress,
    ended_text,
    failure_of,
    how_to_look,
    kept,
    lines_for,
    summarize,
    training_of,
)
from hpo.ranges import ParameterRange, decode
from hpo.record import EARLIER_BEST, HEARD_BEFORE, JobRow, JobWriter, Store, acting
from hpo.search import INTERRUPTED, STOP_REQUESTED, TERMINATED, Controller, OnProbe, Search
from hpo.strategies import Prepared
from hpo.text import count, masked
from trainers import steady
from trainers.channels import Channel
from trainers.errors import DataError, LeaseError, ResourcesError, StorageError, WarmbandError, in_words
from trainers.patient_storage import PatientStorage, saying
from trainers.trainer import Trainer

BEFORE = "before"
"""Key of a running job's summary: that of the last run which ended, empty if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """All that one run is made of.

    Args:
        search: what is to be carried out.
        strategy: its searcher, scheduler and plan.
        ranges: the tuned hyperparameters.
        estimator: what trains.
        channels: what it reads.
        recorded: what the record says of them, where their copies are still to be made; empty where they are there.
        store: database URL of the record; the job is in it.
        watcher: shows how the job goes.
        callbacks: the user's own code.
        forecast: what earlier jobs say that it takes; None where its own probe has to.
        num_to_keep: trials whose checkpoints stay, the best; None keeps every one's.
        priority: its weight where other jobs want gangs on the same cluster.
        notices: who is told of its end and of its budget, by name.
        raised: how the limits were raised that `search` and `strategy` are made of, as the record has it.
        warnings: lines to print, and to keep in the log, before the first trial.
        notify: prints a line.
        interrupts: what asks it to stop, from before its first row on.
        verbose: whether Ray may talk too.
        clock: seconds since the epoch, of its gangs, too; it does not jump.
    """

    search: Search
    strategy: Prepared
    ranges: Mapping[str, ParameterRange]
    estimator: Trainer
    channels: Mapping[str, Channel]
    recorded: Mapping[str, Any] = field(default_factory=dict)
    store: str | None
    watcher: Progress
    forecast: Forecast | None = None
    callbacks: Sequence[Callback] = ()
    num_to_keep: int | None = NUM_TO_KEEP
    priority: int = 1
    notices: Mapping[str, Webhook | Email] = field(default_factory=dict)
    raised: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    notify: Callable[[str], None]
    interrupts: Interrupts
    verbose: bool = False
    clock: Callable[[], float] = steady.now

    def run(self) -> Ended:
        """Runs the job to its end, which is in the record when this returns or raises.

        Raises:
            WarmbandError: the job could not be run: no gang fits or serves, or the record cannot be written.
            KeyboardInterrupt: a second Ctrl-C.
        """
        with steady.measuring(), Store(self.store, make=False) as store:
            announcer = Announcer(store, self.search.name, self.notices, self.search.limits, self.notify)
            try:
                return self._leased(store, announcer)
            finally:
                announcer.close()

    def _leased(self, store: Store, announcer: Announcer) -> Ended:
        """Runs the job, with its lease in hand until its end is written."""
        with store.writer(self.search.name, driver_details()) as writer:
            keep = kept(writer)

            def notify(text: str) -> None:
                self.notify(text)
                keep(text)

            return replace(self, notify=notify)._written(store, writer, announcer)

    def _written(self, store: Store, writer: JobWriter, announcer: Announcer) -> Ended:
        job = store.job(self.search.name)
        check_current(job, self.raised)
        heard = job.held_until
        memory = Memory.of(store, job, heard=heard)
        callbacks = Callbacks(self.callbacks, self.notify, memory)
        archives = Archives(
            job.spec, self.estimator, self.search.storage_path, name=job.name, training=self.watcher.goal.training
        )
        checkpoints = Checkpoints(self.search, writer.flush, num_to_keep=self.num_to_keep, archives=archives)
        notes = notes_of(job, heard)
        on_ray = self._on_ray(memory)
        watchers = [self.watcher, lines_for(self.watcher.goal, kept(writer)), callbacks, announcer, *on_ray]
        record = JobRecord(writer, self.search.metric, watchers, checkpoints, memory, notes)
        with writer.at_once():  # Else who resumes a driver that died in between would bill its gangs once more.
            writer.ledger(*memory.before.unbilled)
            record.note(runs=[*notes["runs"], [self.clock(), None]])
            writer.job(driver={key: value for key, value in job.driver.items() if key != HEARD_BEFORE})
        if writer.left_behind:
            self.notify(f"{job.name} is {writer.left_behind}")
            self.watcher.taken_over = True
        try:
            with self.interrupts.under_way():
                callbacks.job_start(JobStart.of(job))
                controller = self._searched(job, record, writer, memory, on_ray)
            ended = self._ended(controller, checkpoints, memory, record.notes, job.spec.get(EARLIER_BEST))
            if ended.status == "Completed":
                record.leave_undecided()
        except LeaseError:
            checkpoints.leave()  # All of the job is another driver's now.
            raise
        except StorageError as error:  # No trial's fault, and it may be there tomorrow.
            ended = Ended(status="Stopped", reason=self._asked(writer) or str(error))
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
            ended = Ended(
                status="Stopped" if interrupted else "Failed",
                reason=INTERRUPTED if interrupted else masked(in_words(error)),
            )
            if interrupted:
                title = ended_text(self.search.name, ended.status, ended.reason, self.interrupts.resume)
                self.notify(f"{title}\n{how_to_look(self.search.name)}")
            self._end(record, writer, checkpoints, callbacks, ended)
            raise
        ended = self._end(record, writer, checkpoints, callbacks, ended)
        if ended.status == "Completed":
            self._tidy()
        return ended

    def _end(
        self, record: JobRecord, writer: JobWriter, checkpoints: Checkpoints, callbacks: Callbacks, ended: Ended
    ) -> Ended:
        """Writes down how the job ended, and returns that.

        What a run before found stays, where this one did not get to all that is known.
        """
        checkpoints.close(self._close_seconds, sweep=False)
        now = self.clock()
        runs = [*record.notes["runs"][:-1], [record.notes["runs"][-1][0], now]]
        totals = ended.summary or {**record.notes[BEFORE], **known(record.notes)}
        ended = replace(ended, summary={**totals, "runs": runs, "gang_seconds": record.gang_seconds})
        kept(writer)(f"{self.search.name}: {ended.status}" + (f", {ended.reason}" if ended.reason else ""))
        with writer.at_once(), acting(door="Ctrl-C"):
            writer.job(status=ended.status, reason=ended.reason, ended_at=now, summary=ended.summary)
            if ended.reason == INTERRUPTED:
                writer.act("stopped", {})
        callbacks.job_end(JobEnd(name=self.search.name, **ended.to_json()))
        return ended

    def _tidy(self) -> None:
        """Nobody resumes a job that is Completed: the copies of its inputs go."""
        try:
            remove_copies(self.search.storage_path)
        except DataError as error:
            self.notify(f"warning: copies of {self.search.name}'s inputs stay: {error}")

    def _searched(
        self, job: JobRow, record: JobRecord, writer: JobWriter, memory: Memory, on_ray: Sequence[Metrics | JobLog]
    ) -> Controller:
        """The search, carried out and closed."""
        name, at_once = self.search.name, self.search.max_parallel_jobs
        waiting = PatientStorage(saying(self.notify), lambda: bool(self._asked(writer)) or writer.lost_lease)
        waiting.attempt(partial(claim, self.search.storage_path, job, begun=was_claimed(job) or memory.has_checkpoints))
        record.note(**{CLAIMED: True})
        smallest, largest = gang_sizes(self.estimator, self.ranges)
        # A probe changes nothing: who takes a job up again does without.
        search = replace(self.search, probes=()) if memory.trials else self.search
        on_probe = self._probed(record) if search.probes else None
        if memory.trials:
            self.notify(f"{name} had {count(memory.trials, 'trial')}, {len(memory.ended)} of them ended: going on")
        for warning in self.warnings:
            self.notify(warning)
        with (
            self.watcher,
            self.estimator.gangs(
                name,
                self.channels,
                at_once=at_once,
                workers=largest,
                several_sizes=smallest < largest,
                priority=self.priority,
                patient=self.search.limits.patient,
                storage_path=self.search.storage_path,
                notify=self.notify,
                verbose=self.verbose,
            ) as gangs,
            ExitStack() as stack,
        ):
            for watcher in on_ray:
                stack.enter_context(watcher)
            controller = Controller(
                search,
                searcher=self.strategy.searcher,
                scheduler=self.strategy.scheduler,
                decode=partial(decode, self.ranges),
                gangs=gangs,
                record=record,
                on_probe=on_probe or (lambda probed: None),
                recall=memory,
                clock=self.clock,
                began=record.notes["runs"][-1][0],
            )

            def stop(reason: str) -> None:
                writer.hurry()
                controller.stop(reason)

            self.interrupts.stops(stop)
            stack.enter_context(Copying(self.recorded, self.channels if self.recorded else {}))
            if self.estimator.in_hand:
                asked = partial(_is_to_stop, writer)
                stack.enter_context(Requests(asked, partial(controller.stop, STOP_REQUESTED), controller.hear))
            try:
                controller.run()
            except ResourcesError as error:
                if writer.left_behind:
                    raise ResourcesError(f"{error}. {name} is {writer.left_behind}") from error
                raise
            self.interrupts.closing()
        return controller

    @property
    def _close_seconds(self) -> float:
        """How long the end of the job waits for removals."""
        return HURRIED_SECONDS if self.interrupts.reason else CLOSE_SECONDS

    def _asked(self, writer: JobWriter) -> str:
        """Why the job was asked to stop, by a signal or through its record; empty if it was not."""
        return self.interrupts.reason or (STOP_REQUESTED if writer.stop_requested else "")

    def _probed(self, record: JobRecord) -> OnProbe:
        """Measures in this process before gangs start; what is returned is told what the first of them measured."""
        outlook = Outlook.of(self.search, self.strategy.plan, in_hand=self.estimator.in_hand)
        probing = Probing(self.estimator, self.channels, outlook, self.notify, self.forecast)

        def note() -> None:
            record.note(probe=probing.to_json(), forecast=probing.forecast and probing.forecast.to_json())

        def probed(measurement: Probed) -> None:
            probing.served(measurement)
            note()

        note()
        return probed

    def _on_ray(self, memory: Memory) -> Sequence[Metrics | JobLog]:
        """The observers for the cluster's own monitoring; none without a cluster."""
        if self.estimator.in_hand:
            return ()
        return Metrics(self.watcher.goal, self.watcher.tally), JobLog(self.search, memory)

    def _ended(
        self,
        controller: Controller,
        checkpoints: Checkpoints,
        memory: Memory,
        notes: Mapping[str, Any],
        earlier_best: Mapping[str, Any] | None,
    ) -> Ended:
        """How the search ended, and what it found: nothing that counts if it stopped before it knew all there is."""
        past = [] if controller.stopped else memory.undecided
        unknown = any(controller.trials.counts(row.number) for row in memory.unanswered if row not in past)
        kept = checkpoints.close(self._close_seconds, sweep=not unknown)
        if unknown and not controller.trials.verdict:
            return Ended(status="Failed" if controller.search_failure else "Stopped", reason=controller.stopped)
        noise = Noise(self.search.metric, self.channels)
        summary = {
            **summarize(controller, self.strategy.plan, noise, self.estimator, earlier_best, self.channels),
            **(
                {"training": training_of(controller, self.estimator, self.channels)}
                if self.watcher.goal.training
                else {}
            ),
            "checkpoints": kept,
            **known(notes),
        }
        if forecast := summary.get("forecast"):
            total = controller.ledger.total
            wrong = forecast_error(forecast["expected"], worker_seconds=total, wall_seconds=summary["wall_seconds"])
            summary["forecast"] = {**forecast, "error": wrong}
        if self.watcher.goal.training and (failed := failure_of(controller)):
            return Ended(status="Failed", reason=failed, summary=summary)
        all_failed = bool(controller.runs) and all(run.failure for run in controller.runs.values())
        if controller.trials.hopeless or (all_failed and not controller.stopped):
            distinct = "; ".join(f"{error['error']} ({error['first']})" for error in summary["errors"])
            what = controller.trials.verdict.reason if controller.trials.verdict else "every trial failed"
            return Ended(status="Failed", reason=f"{what}: {distinct}", summary=summary)
        if controller.search_failure:
            return Ended(status="Failed", reason=controller.search_failure, summary=summary)
        if controller.stopped and not controller.completed:
            return Ended(status="Stopped", reason=controller.stopped, summary=summary)
        return Ended(status="Completed", reason=controller.completed, summary=summary)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a job ended.

    Args:
        status: "Completed", "Failed" or "Stopped".
        reason: why it did not run to its plan's end; empty if it did.
        summary: what it found and used; empty where it could not be run.
    """

    status: str
    reason: str
    summary: dict[str, Any] = field(default_factory=dict)

    def check(self, job: str, kind: str = "tuning") -> None:
        """Raises what a process that ran a job raises for its end.

        Args:
            job: its name.
            kind: "tuning" or "training".

        Raises:
            WarmbandError: it failed.
            KeyboardInterrupt: Ctrl-C stopped it.
            SystemExit: SIGTERM did; so the process would have ended without a job.
        """
        if self.status == "Failed":
            raise WarmbandError(f"{kind} job {job} failed: {self.reason}")
        if self.reason == INTERRUPTED:
            raise KeyboardInterrupt
        if self.reason == TERMINATED:
            raise SystemExit(EXIT_CODES[TERMINATED])

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return {"status": self.status, "reason": self.reason, "summary": self.summary}


def _is_to_stop(writer: JobWriter) -> bool:
    """Return whether somebody asked for a stop, or nothing that the job finds is recorded any more."""
    return writer.stop_requested or writer.lost_lease


def known(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The facts known before a job's first trial, for its summary."""
    return {"probe": notes.get("probe", {}), "forecast": notes.get("forecast"), CLAIMED: bool(notes.get(CLAIMED))}


def notes_of(job: JobRow, heard: float) -> dict[str, Any]:
    """The summary of a job that is taken up, as its driver before left it.

    Args:
        job: its row.
        heard: when that driver was last heard of, in unix seconds.
    """
    runs = [[began, max(began, heard) if ended is None else ended] for began, ended in job.summary.get("runs", [])]
    first = job.summary.get("first_step_seconds")
    before = job.summary.get(BEFORE, job.summary)
    notes = known(job.summary)
    if any(entry["at"] >= ended for entry in job.spec.get(RAISED, ()) for _, ended in runs[-1:]):
        notes |= {"probe": {**notes["probe"], "verdict": ""}, "forecast": None}  # They were said of a smaller job.
    had = {"gang_seconds": gang_seconds(job, heard), "gang_since": None}
    return {**notes, "runs": runs, "held": {}, "first_step_seconds": first, **had, BEFORE: before}
