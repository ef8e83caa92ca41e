"""The one loop: Ray Tune's searcher and scheduler decide, gangs execute, the record keeps what comes back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from hpo.cost import Budget, Ledger
from hpo.ranking import has_value
from hpo.search.dispatch import Dispatch
from hpo.search.halts import goes_back
from hpo.search.observer import STOP_REQUESTED, JobState, Record
from hpo.search.recall import FirstRun, Recall
from hpo.search.reference_runs import Beside, OnProbe
from hpo.search.roster import Roster, Work
from hpo.search.trial import UNTUNED, Search, TrialRun, rank_of, standing_of
from hpo.search.trials import Trials
from trainers import steady
from trainers.errors import SearchError, StorageError
from trainers.gangs import Assignment, Event, GangEnded, GangLost, Gangs, GangUp, Progress, Segment, Served, StorageAway
from trainers.patient_storage import PatientStorage

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 15.0
"""How long a job that is stopped waits for its trials' next reports."""


class Controller:
    """Runs one search to its end: hands out what its trials need, and takes in what comes back.

    Args:
        search: what to carry out.
        searcher: any `ray.tune.search.Searcher`.
        scheduler: any `ray.tune.schedulers.TrialScheduler`; one that is no `RungScheduler` decides at every unit.
        decode: turns what the searcher suggests into hyperparameters; values that a person gave follow it.
        gangs: what executes.
        record: what keeps it.
        on_probe: see `hpo.search.reference_runs.OnProbe`.
        recall: what is known of the search already, from a run that broke off; None is nothing.
        clock: seconds since the epoch; it does not jump.
        poll_seconds: how long to wait for an event before looking whether somebody asked for a stop.
        began: when the job's run began, in seconds since the epoch, if that was before: Ray had to start, say.
    """

    def __init__(
        self,
        search: Search,
        *,
        searcher: Searcher,
        scheduler: TrialScheduler,
        decode: Callable[..., dict[str, Any]],
        gangs: Gangs,
        record: Record,
        on_probe: OnProbe = lambda probed: None,
        recall: Recall | None = None,
        clock: Callable[[], float] = steady.now,
        poll_seconds: float = 0.5,
        began: float | None = None,
    ) -> None:
        recall = FirstRun() if recall is None else recall  # One without trials may know of time and cost before.
        self.search = search
        self._ready_at = clock()
        began = self._ready_at if began is None else began
        self.started_at = began - recall.before.seconds  # Later by the time in which nobody drove the job.
        self.before_gangs = self._ready_at - began  # Seconds of this run until gangs could be asked for.
        first = recall.before.first_step_seconds
        self.first_step_at = None if first is None else self.started_at + first
        self.ledger = Ledger(record.ledger, clock, recall.before.ledger, recall.before.gang_seconds)
        self.trials = Trials(
            search,
            searcher=searcher,
            scheduler=scheduler,
            decode=decode,
            record=record,
            recall=recall,
            clock=clock,
            end=self._end,
        )
        self.runs, self.objective = self.trials.runs, self.trials.objective
        self._beside = Beside(search, on_probe, recall.begin)
        self._budget = Budget(search.limits, self.ledger)
        self._demand = self.trials.demand
        self._told_before = self.trials.turns.again(
            self.runs, self.trials.choose, recall.all_told, self.trials.stop_again
        )
        self._known = recall
        self._gangs = gangs
        self._record = record
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._roster = Roster(clock, recall.before.ledger)
        self._dispatch = Dispatch(
            search,
            trials=self.trials,
            beside=self._beside,
            gangs=gangs,
            roster=self._roster,
            budget=self._budget,
            ledger=self.ledger,
            clock=clock,
            stop=self.stop,
        )
        self._storage_away = ""  # Why checkpoints cannot be read or written at present.
        self._storage = PatientStorage(self._tell_away, lambda: bool(self._stopping) or record.stop_requested)
        self._stopping = ""
        self.search_failure = ""  # Why the search could not go on: by its searcher or scheduler, or a fault of the job.
        self._over = False  # What comes is the closing of gangs.

    def run(self) -> None:
        """Runs until every trial has ended, or a stop is asked for; closes the gangs either way.

        Raises:
            ResourcesError: the cluster holds no gang.
            GangError: gangs cannot start or serve.
        """
        try:
            while not self._stopping and not self._decided_all():
                self._listen()
            in_time = self._drain()
            self._over = True
            self._record.progress(self.state)
            self._abandon()
            self._gangs.close(now=not in_time)
        except KeyboardInterrupt:
            self._gangs.close(now=True)
            raise
        finally:
            try:
                self._gangs.close()
            finally:  # Also where Ctrl-C comes while they close.
                self.ledger.close()

    def _decided_all(self) -> bool:
        """Hands out what there is to train; returns whether nothing is left."""
        try:
            self._recall()
            if not self._stopping:
                self.trials.stops.obey(self.runs, self._roster, self._gangs, self.trials.stop)
                self._dispatch.hand_out()
            return not self._roster.busy and (bool(self._stopping) or self._dispatch.nothing_left())
        except SearchError as error:  # What trains is waited for, as in every stop.
            self.stop(str(error))
            self.search_failure = self._stopping
            return True

    def stop(self, reason: str) -> None:
        """Hands out nothing more, and ends what is being served at its next report.

        `run` returns when that is back, or after `DRAIN_SECONDS`. It may be called from a signal handler; a search
        that has ended stays as it is.
        """
        if not self._over:
            self._stopping = reason
            self._halt()

    def hear(self) -> None:
        """Halts the trials that persons stop; for a thread beside this one, where trials train in this one."""
        self.trials.stops.halt(self._roster, self._gangs)

    def _end(self, reason: str) -> bool:
        if self._stopping:
            return False
        self.stop(reason)
        return True

    @property
    def trained(self) -> int:
        """Units trained by all trials, the untuned run not counted."""
        return self.trials.trained

    @property
    def completed(self) -> str:
        """Which completion criterion was met; empty if none was."""
        verdict = self.trials.verdict
        return verdict.reason if verdict and not verdict.hopeless else ""

    @property
    def untuned(self) -> TrialRun | None:
        """The run with the trainer's own hyperparameters, once it was begun."""
        return self._beside.untuned

    @property
    def probe_failure(self) -> str:
        """Why a probe could not be trained; empty if it was, or there was none."""
        return self._beside.probe.failure if self._beside.probe else ""

    @property
    def seconds(self) -> float:
        """Since the start, on the controller's clock."""
        return self._clock() - self.started_at

    @property
    def stopped(self) -> str:
        """Why the run was stopped; empty if it was not."""
        return self._stopping

    def best(self) -> TrialRun | None:
        """The trial with the best objective; ties to the less resource, then to the first. None if none is finite."""
        return self.trials.comparison.best(self.runs.values())

    @property
    def untuned_counts(self) -> bool:
        """Whether the un-tuned run trained to its end and has a finite objective, so that it may be the result."""
        run = self.untuned
        if run is None or not run.trial.is_finished() or run.cut or run.stops or run.stopped is not None:
            return False
        return has_value(rank_of(self.search.ranking, run))

    def result(self) -> TrialRun | None:
        """Return the run that the search comes to: its best trial, or the un-tuned run if that is better."""
        best, untuned = self.best(), self.untuned if self.untuned_counts else None
        if best is None or untuned is None:
            return best or untuned
        ranking = self.search.ranking
        tuned = replace(standing_of(ranking, best), value=self.trials.comparison.score(best, self.runs.values()))
        return best if ranking.rank_standing(tuned) < rank_of(ranking, untuned) else untuned

    @property
    def state(self) -> JobState:
        """The state for its observers."""
        up = len(self._roster.busy) + len(self._roster.free)
        left = self._dispatch.gang_seconds_left
        return JobState(
            seconds=self.seconds,
            seconds_left=None if left is None or not up else left / up,
            first_step_seconds=self.first_step_at and self.first_step_at - self.started_at,
            trained=self.trained,
            ahead=self._roster.ahead,
            gangs_busy=len(self._roster.busy),
            gangs_idle=len(self._roster.free),
            gangs_starting=self._gangs.starting,
            gangs=self._roster.told(),
            untuned=self.untuned is not None and not self.untuned.trial.is_finished(),
            storage_away=self._storage_away,
            stopped=self._stopping,
            ledger=self.ledger,
            tariff=self.search.limits.tariff,
        )

    def _drain(self) -> bool:
        """Waits for what is being served; returns whether all of it came back in time."""
        deadline = self._clock() + DRAIN_SECONDS
        self._halt()  # What was handed out while the stop was asked for, too.
        while self._roster.busy and self._clock() < deadline:
            self._listen()
        return not self._roster.busy

    def _halt(self) -> None:
        for gang in list(self._roster.busy):
            self._gangs.halt(gang)

    def _abandon(self) -> None:
        """Ends what a stop left waiting, so that nothing looks as if it were still to come."""
        for run in [*self.trials.live.values(), *([self.untuned] if self.untuned else [])]:
            if run.trial.is_finished():
                continue
            run.cut = self.trials.verdict is None
            run.stops = True
            run.trial.set_status(Trial.TERMINATED)
            self.trials.conclude(run) if run.tuned else self.trials.keep(run)
        self.trials.leave_out()

    # ---- taking up a run that broke off

    def _recall(self) -> None:
        """Decides again what was decided before, on the results that are known; what they do not tell waits for gangs.

        Where the order makes a difference, it is that of the turns in the record; `max_parallel_jobs` holds nothing up.
        """
        if not self._known:
            return
        unknown: list[tuple[TrialRun, str]] = []
        while (known := self._next_known()) is not None:
            run, stop = known
            in_order, status = run.tuned and self.trials.turns.known, run.trial.status
            run.trial.set_status(Trial.RUNNING)
            try:
                answer = self._storage.attempt(partial(self._known.answer, run, stop))
            except StorageError as error:
                unknown.append((run, status))
                self._stop_without_storage(str(error))
                break
            if answer is not None:
                self._demand.recalled()
                self.trials.booked(run, answer)
            elif not self.trials.stop_again(run):
                unknown += () if in_order else ((run, status),)  # Else it is under way until the turns are over.
        for run, status in unknown:
            run.trial.set_status(status)

    def _tell_away(self, reason: str) -> None:
        self._storage_away = reason
        self._record.progress(self.state)

    def _stop_without_storage(self, reason: str) -> None:
        """Files could not be read or written; where they were given up for a stop, that is why."""
        self._storage_away = ""
        if not self._stopping:
            self.stop(STOP_REQUESTED if self._record.stop_requested else reason)

    def _next_known(self) -> tuple[TrialRun, int] | None:
        """The next recalled assignment and its end; once a job turns out to be complete, the un-tuned run alone."""
        if not self._stopping and (told := next(self._told_before, None)):
            return told
        run = None if self._stopping or self.trials.turns.known else self.trials.choose_known()
        if run is None and (self.trials.verdict or not self._stopping) and self._known.knows(UNTUNED):
            run = self._beside.after()
        return None if run is None else (run, self.trials.milestone(run))

    # ---- taking in what comes back

    def _listen(self) -> None:
        self._record.progress(self.state)
        for event in self._gangs.events(self._poll_seconds):
            self._take_in(event)
        if self._record.stop_requested and not self._stopping:
            self.stop(STOP_REQUESTED)
        if (reached := self._budget.reached(self.seconds)) and not self._stopping:
            self.stop(reached)
        for gang, work in self._roster.silent(self.search.patience):
            self._gangs.recycle(gang, f"no report of {work.run.id} for {self.search.patience:.0f} s")
        self.trials.tell_cuts()

    def _take_in(self, event: Event) -> None:
        match event:
            case GangUp():
                held_since = self._gangs.held_since(event.gang)
                self._beside.up(self._clock() - self._ready_at, self._clock() - held_since, self.before_gangs)
                if event.gang not in self._roster.sizes:
                    self._budget.started(self._clock() - held_since)
                self.ledger.up(event.gang, event.workers, held_since)
                self._roster.up(event.gang, event.serves or event.workers, event.hosts, event.devices)
            case Progress():
                run = self._roster.heard(event.gang, event.trial_id, event.reports)
                if run is not None and run is not self._beside.probe:
                    self._record.reports(run, event.reports)
            case Served():
                if self._roster.heard(event.gang, event.trial_id):
                    self._served(event, self._roster.done(event.gang))
            case StorageAway():
                self._roster.waits(event.gang)
                self._storage_away = event.reason
            case GangLost() | GangEnded():
                self._lost(event)

    def _served(self, event: Served, work: Work) -> None:
        run, seconds = work.run, self._clock() - work.since
        self.ledger.served(event.gang, run.id, event.segment)
        if event.away:
            self._put_back(run, event.error)
            self._stop_without_storage(event.error)
            return
        if run is self._beside.probe:
            self._beside.probed(event, seconds)
            return
        if event.segment is not None:
            if self.first_step_at is None:
                # By the worker's clock, which may be another machine's, and set wrong.
                self.first_step_at = min(max(work.since, event.segment.first_step_at), self._clock())
            if self._goes_back(run, event.segment, work.assignment):
                return
            self._demand.served(len(event.segment.reports), seconds)
        if not (event.spoilt and run.checkpoint and self._starts_over(run, event.error)):
            self.trials.booked(run, event)
        if event.of_job and not self._stopping:
            self.stop(event.error)
            self.search_failure = self._stopping

    def _starts_over(self, run: TrialRun, reason: str) -> bool:
        """Whether a trial whose checkpoint is spoilt trains its rungs again; as often as it may lose its workers.

        A gang that was lost and still runs may have written into it, late.
        """
        run.attempts += 1
        if run.attempts >= self.search.max_attempts:
            return False
        logger.warning("trial %s starts again, with the same result: %s", run.id, reason)
        self.trials.start_over(run)
        run.again = run.attempts
        self._put_back(run, reason)
        return True

    def _goes_back(self, run: TrialRun, segment: Segment, assignment: Assignment) -> bool:
        """See `goes_back`."""
        whole, asked = self.trials.comparison.is_whole(segment), self.trials.stops.asked(run)
        if asked or not goes_back(self.search, run, segment, assignment, whole=whole, stopping=bool(self._stopping)):
            return False
        self._record.reports(run, segment.reports)
        run.trial.set_status(Trial.PENDING)
        self.trials.keep(run)
        return True

    def _lost(self, event: GangLost | GangEnded) -> None:
        """A gang lost its workers: its trial is served again from its last checkpoint, wherever there is room."""
        run = self._roster.lost(event.gang, ended=isinstance(event, GangEnded))
        self.ledger.lost(event.gang, run.id if run else "")
        if isinstance(event, GangEnded):
            self.ledger.ended(event.gang)
        if run is None:
            return
        reason = event.reason if isinstance(event, GangLost) else event.error
        if run is not self._beside.probe:
            run.attempts += 1
        if run.attempts >= self.search.max_attempts:
            self.trials.fail(run, f"lost its workers {run.attempts} times, the last time with: {reason}")
        else:
            self._put_back(run, reason)

    def _put_back(self, run: TrialRun, reason: str) -> None:
        """Puts a trial's assignment back, to be served again; a probe is not."""
        if run is self._beside.probe:
            self._beside.lost_probe(reason)
        else:
            run.trial.set_status(Trial.PENDING)
            self.trials.keep(run)
