"""The one loop: Ray Tune's searcher and scheduler decide, gangs execute, the record keeps what comes back."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from hpo.beside import Beside, OnProbe
from hpo.comparison import Comparison
from hpo.completion import Completion
from hpo.demand import Demand
from hpo.ledger import Ledger
from hpo.limits import Budget
from hpo.memory import Memory, goes_on_from
from hpo.roster import Roster, Work
from hpo.scheduler import SynchronousHyperBandScheduler
from hpo.search import UNTUNED, Search, TrialRun, new_run, next_assignment, start_over
from hpo.watch import Record
from trainers.assignment import (
    Assignment,
    Event,
    GangEnded,
    GangLost,
    GangUp,
    Progress,
    Report,
    Segment,
    Served,
    merged,
)
from trainers.errors import GangError
from trainers.gangs import Gangs

DRAIN_SECONDS = 15.0
"""How long a job that is stopped waits for its trials' next reports."""

FIRST_FAILURES = 5
"""A job whose first so many trials all fail, while nothing has been trained, is not going to get better."""

STOP_REQUESTED = "stop requested"


class Controller:
    """Runs one search to its end. Towards schedulers it has the methods of Ray Tune's own controller.

    Args:
        search: what to carry out.
        searcher: any `ray.tune.search.Searcher`.
        scheduler: any `ray.tune.schedulers.TrialScheduler`. One with a `milestone` says how far an assignment may go;
            for others every assignment is one unit, so that they decide at each.
        decode: turns what the searcher suggests into hyperparameters.
        gangs: what executes.
        record: what keeps it.
        on_probe: see `hpo.beside.OnProbe`.
        memory: what is known of the search already, from a run that broke off.
        clock: seconds since the epoch.
        poll_seconds: how long to wait for an event before looking whether somebody asked for a stop.
    """

    def __init__(
        self,
        search: Search,
        *,
        searcher: Searcher,
        scheduler: TrialScheduler,
        decode: Callable[[dict[str, Any]], dict[str, Any]],
        gangs: Gangs,
        record: Record,
        on_probe: OnProbe = lambda probed: None,
        memory: Memory | None = None,
        clock: Callable[[], float] = time.time,
        poll_seconds: float = 0.5,
    ) -> None:
        self.search = search
        self.runs: dict[str, TrialRun] = {}
        self._beside = Beside(search, on_probe)
        self._comparison = Comparison(search)
        self.objective = self._comparison.objective
        self._memory = memory or Memory()
        before = self._memory.before
        self.started_at = clock() - before.seconds
        """Later by the time in which nobody drove the job."""
        self.trained = 0
        """Units trained by all trials, the untuned run not counted."""
        first = before.first_step_seconds
        self.first_step_at = None if first is None else self.started_at + first
        self.ledger = Ledger(record.ledger, clock, before.ledger)
        self._budget = Budget(search.limits, self.ledger)
        self.search_alg = searcher
        self._scheduler: Any = scheduler  # Ray types its callers as its own controller.
        self._decode = decode
        self._gangs = gangs
        self._record = record
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._live: dict[str, TrialRun] = {}
        self._roster = Roster(clock)
        self._chosen: list[TrialRun] = []
        """Trials that are to be trained next and wait for a gang of their size; each has a place of those at once."""
        self._hyperband = scheduler if isinstance(scheduler, SynchronousHyperBandScheduler) else None
        plan = self._hyperband.plan if self._hyperband else None
        self._demand = Demand(search, plan)
        self._stopping = ""
        self.completed = ""
        """Which completion criterion was met; empty if none was."""
        self.completion = Completion(search.completion, plan, maximize=search.mode == "max")
        self.hopeless = False
        """Whether it was stopped since its first trials all failed."""
        self._failures = 0
        self._any_trained = False
        self._cuts_told = 0
        self._waited = self._listened = 0.0
        """Seconds without a gang, until those that were looked at last."""

    def run(self) -> None:
        """Runs until every trial has ended, or a stop is asked for; closes the gangs either way.

        Raises:
            ResourcesError: the cluster holds no gang.
            GangError: gangs cannot start or serve.
        """
        try:
            while not self._stopping:
                self._recall()
                self._hand_out()
                if not self._roster.busy and (self._stopping or self._nothing_left()):
                    break
                self._listen()
            in_time = self._drain()
            self._record.progress(self)
            self._abandon()
            self._gangs.close(now=not in_time)
        except KeyboardInterrupt:
            self._gangs.close(now=True)
            raise
        finally:
            self._gangs.close()
            self.ledger.close()

    def stop(self, reason: str) -> None:
        """Hands out nothing more, and ends what is being served at its next report.

        `run` returns when that is back, or after `DRAIN_SECONDS`. It may be called from a signal handler.
        """
        self._stopping = reason
        self._halt()

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
    def gangs_busy(self) -> int:
        """Gangs that are serving an assignment."""
        return len(self._roster.busy)

    @property
    def gangs_idle(self) -> int:
        """Gangs that are up and have nothing to serve."""
        return len(self._roster.free)

    @property
    def gangs_starting(self) -> int:
        """Gangs that are on their way."""
        return self._gangs.starting

    def seconds_left(self) -> float | None:
        """Wall seconds that the rest takes at most, at the pace so far; None before enough is known.

        It counts the gangs that are up: more of them shorten it, and so does what Hyperband still stops.
        """
        left = self._demand.seconds_left(self.trained, self._roster.longest)
        up = self.gangs_busy + self.gangs_idle
        return None if left is None or not up else left / up

    @property
    def stopped(self) -> str:
        """Why the run was stopped; empty if it was not."""
        return self._stopping

    def best(self) -> TrialRun | None:
        """The trial with the best objective; ties to the less resource, then to the first. None if none is finite."""
        return self._comparison.best(self.runs.values())

    # ---- what Ray Tune's schedulers call

    def get_trials(self) -> list[Trial]:
        """Every trial so far."""
        return [run.trial for run in self.runs.values()]

    def get_live_trials(self) -> set[Trial]:
        """Those that have not ended."""
        return {run.trial for run in self._live.values()}

    def stop_trial(self, trial: Trial) -> None:
        """Ends a trial that is pending, paused or running."""
        if trial.is_finished():
            return
        was_running = trial.status == Trial.RUNNING
        trial.set_status(Trial.TERMINATED)
        run = self.runs[trial.trial_id]
        if was_running:
            self._scheduler.on_trial_complete(self, trial, self._comparison.result(run, run.resource, run.value, {}))
        else:
            self._scheduler.on_trial_remove(self, trial)
        self._conclude(run)

    def pause_trial(self, trial: Trial, should_checkpoint: bool = True) -> None:
        """Lets a trial wait; it has been checkpointed at the end of its assignment."""
        trial.set_status(Trial.PAUSED)

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
        for run in [*self._live.values(), *([self.untuned] if self.untuned else [])]:
            if run.trial.is_finished():
                continue
            run.cut = not self.completed
            run.trial.set_status(Trial.TERMINATED)
            self._conclude(run) if run.tuned else self._keep(run)

    # ---- taking up a run that broke off

    def _recall(self) -> None:
        """Decides again what was decided before, on the results that are known; what they do not tell waits for gangs.

        In which order makes no difference, so nothing is held to `max_parallel_jobs`.
        """
        if not self._memory:
            return
        unknown: list[tuple[TrialRun, str]] = []
        while not self._stopping and (run := self._next_known()) is not None:
            status = run.trial.status
            run.trial.set_status(Trial.RUNNING)
            answer = self._memory.answer(run, self._milestone(run))
            if answer is None:
                unknown.append((run, status))
            else:
                self._demand.recalled()
                self._booked(run, answer)
        for run, status in unknown:
            run.trial.set_status(status)

    def _next_known(self) -> TrialRun | None:
        trial = self._scheduler.choose_trial_to_run(self)
        if trial is None and self._memory.suggested(len(self.runs)):
            trial = self._suggest()
        if trial is not None:
            return self.runs[trial.trial_id]
        return self._beside.after() if self._memory.knows(UNTUNED) else None

    # ---- handing out work

    def _hand_out(self) -> None:
        """What waits for a gang of its size comes first, then what the free gangs' other places hold; then gangs."""
        self._gone(self._gangs.give_back())
        self._chosen = [run for run in self._chosen if not run.trial.is_finished() and not self._assign(run)]
        while self._roster.free and len(self._roster.busy) + len(self._chosen) < self.search.max_parallel_jobs:
            run = self._next()
            if run is None:
                break
            run.trial.set_status(Trial.RUNNING)  # Nobody chooses it again while it waits.
            if not self._assign(run):
                self._chosen.append(run)
        at_work = [*self._chosen, *(work.run for work in self._roster.busy.values())]
        sizes = self._demand.sizes(at_work, self._roster.sizes.values(), untuned_left=self._beside.untuned_left)
        self._want(sizes)

    def _want(self, sizes: dict[int, int]) -> None:
        """Says which gangs could be busy, as far as they can be paid; stops where nothing can go on without others."""
        there = Counter(self._roster.sizes.values())
        paid = self._budget.pays_for(sizes, there, self._gangs.starting)
        self._gone(self._gangs.want(paid, self._demand.seconds_left(self.trained, self._roster.longest)))
        unpaid = [workers for workers in sizes if paid[workers] < sizes[workers]]
        to_come = self._gangs.starting or any(paid[workers] > there[workers] for workers in paid)
        if unpaid and not self._roster.busy and not to_come:
            self.stop(self._budget.short_of(unpaid[0]))

    def _gone(self, gangs: Collection[str]) -> None:
        """Idle gangs were given back."""
        for gang in gangs:
            self._roster.released(gang)
            self.ledger.ended(gang)

    def _assign(self, run: TrialRun) -> bool:
        """Hands a trial's next assignment to a free gang of its size, if there is one."""
        gang = self._roster.free_one(run.workers)
        if gang is None:
            return False
        if run.resource and not run.checkpoint:
            start_over(run)
        assignment = next_assignment(self.search, run, self._milestone(run))
        self.ledger.assigned(gang)
        self._roster.begin(gang, run, assignment)
        run.started_at = run.started_at or self._clock()
        self._gangs.assign(gang, assignment)
        self._keep(run)
        return True

    def _next(self) -> TrialRun | None:
        """The probe first; then what the scheduler chooses, a new trial, or the untuned run; None for nothing yet."""
        if self._beside.measuring:
            return None
        if (probe := self._beside.before()) is not None:
            return probe
        trial = self._scheduler.choose_trial_to_run(self)
        if trial is None:
            trial = self._suggest()
        return self._beside.after() if trial is None else self.runs[trial.trial_id]

    def _suggest(self) -> Trial | None:
        if self._demand.to_come < 1:
            return None
        number = len(self.runs)
        trial_id = f"{self.search.name}-{number:03d}"
        suggested = self.search_alg.suggest(trial_id)
        if suggested == Searcher.FINISHED:  # type: ignore[comparison-overlap]  # a string, against its own annotation
            self._demand.exhausted = True
            if self._hyperband:
                self._hyperband.no_more_trials(self)
            chosen: Trial | None = self._scheduler.choose_trial_to_run(self)
            return chosen
        if suggested is None:
            return None
        hyperparameters = self._decode(suggested)
        if (known := self._memory.suggested(number)) and known.hyperparameters != hyperparameters:
            hyperparameters = known.hyperparameters  # The searcher drew others; what was trained is what counts.
        run = new_run(self.search, number, trial_id, hyperparameters)
        self._memory.begin(run)
        self.runs[trial_id] = self._live[trial_id] = run
        self._demand.drawn(run)
        self._scheduler.on_trial_add(self, run.trial)
        if self._hyperband:
            run.bracket = self._hyperband.bracket(run.trial)
        self._keep(run)
        return run.trial

    def _milestone(self, run: TrialRun) -> int:
        """The units at which its next assignment ends."""
        if not run.tuned:
            return run.limit
        if self._hyperband is None:
            return min(run.limit, run.resource + 1)
        return min(run.limit, self._hyperband.next_rung(run.trial, run.resource))

    def _nothing_left(self) -> bool:
        unfinished = len(self._live)
        new = self._demand.to_come > 0
        if unfinished and self._roster.free and not new and not self._chosen:
            names = ", ".join(list(self._live)[:5])
            raise GangError(f"the scheduler neither runs nor ends {unfinished} trials: {names}")
        return not unfinished and self._beside.finished and not new

    # ---- taking in what comes back

    def _listen(self) -> None:
        self._record.progress(self)
        waiting = not self._roster.sizes
        for event in self._gangs.events(self._poll_seconds):
            self._take_in(event)
        if self._record.stop_requested and not self._stopping:
            self.stop(STOP_REQUESTED)
        now = self.seconds
        if waiting:
            self._waited += now - self._listened
        self._listened = now
        if (reached := self._budget.reached(now, self._waited)) and not self._stopping:
            self.stop(reached)
        for gang, work in self._roster.silent(self.search.patience):
            self._gangs.recycle(gang, f"no report of {work.run.id} for {self.search.patience:.0f} s")
        self._tell_cuts()

    def _tell_cuts(self) -> None:
        cuts = self._hyperband.core.cuts if self._hyperband else []
        for cut in cuts[self._cuts_told :]:
            self._record.rung(cut)
        self._cuts_told = len(cuts)

    def _take_in(self, event: Event) -> None:
        match event:
            case GangUp():
                held_since = self._gangs.held_since(event.gang)
                self._beside.up(self.seconds, self._clock() - held_since)
                if event.gang not in self._roster.sizes:
                    self._budget.started(self._clock() - held_since)
                self.ledger.up(event.gang, event.workers, held_since)
                self._roster.up(event.gang, event.serves or event.workers)
            case Progress():
                run = self._roster.heard(event.gang, event.trial_id)
                if run is not None and run is not self._beside.probe:
                    self._record.reports(run, event.reports)
            case Served():
                if self._roster.heard(event.gang, event.trial_id):
                    self._served(event, self._roster.done(event.gang))
            case GangLost() | GangEnded():
                self._lost(event)

    def _served(self, event: Served, work: Work) -> None:
        run, seconds = work.run, self._clock() - work.since
        self.ledger.served(event.gang, run.id, event.segment)
        if run is self._beside.probe:
            self._beside.probed(event, seconds)
            return
        if event.segment is not None:
            if self.first_step_at is None:
                self.first_step_at = event.segment.first_step_at
            if self._goes_back(run, event.segment, work.assignment):
                return
            self._demand.served(len(event.segment.reports), seconds)
        self._booked(run, event)

    def _goes_back(self, run: TrialRun, segment: Segment, assignment: Assignment) -> bool:
        """Whether a trial was halted on its way and stands at its rung again, as it cannot go on exactly from there.

        If the job stops, what it reached is kept all the same, and beside it what it goes on from.
        """
        if not segment.reports or segment.reached >= assignment.stop:
            return False
        # What is wrong with a segment is said of all of it.
        whole = not self._comparison.missing(segment.reports) and not self._comparison.divergence(segment.reports)
        if whole and self.search.exact_from(run.trial.config):
            return False
        if whole and self._stopping:
            run.back = goes_on_from(run)
            return False
        self._tell(run, segment.reports)
        run.trial.set_status(Trial.PENDING)
        self._keep(run)
        return True

    def _booked(self, run: TrialRun, event: Served) -> None:
        """Takes what an assignment came to: a segment, a failure, or numbers that are not finite any more."""
        if event.segment is not None:
            self._take_up(run, event.segment)
        elif event.diverged:
            self._diverge(run, event.error, event.reports)
        else:
            self._tell(run, event.reports)
            self._fail(run, event.error, event.traceback, event.logs)

    def _take_up(self, run: TrialRun, segment: Segment) -> None:
        """Books a segment and does what the scheduler says of it."""
        run.checkpoint, run.checkpoint_bytes = segment.checkpoint, segment.checkpoint_bytes
        run.details = merged(run.details, segment.details)
        if missing := self._comparison.missing(segment.reports):
            self._record.reports(run, segment.reports)
            self._fail(run, missing)
            return
        if divergence := self._comparison.divergence(segment.reports):
            self._diverge(run, divergence, segment.reports)
            return
        self._any_trained = True
        action = TrialScheduler.CONTINUE
        for report in segment.reports:
            self._follow(run, report)
            if run.tuned:
                result = self._comparison.result(run, report.step, self.objective(run), report.metrics)
                self.search_alg.on_trial_result(run.id, result)
                action = self._scheduler.on_trial_result(self, run.trial, result)
        self._record.reports(run, segment.reports)
        over = not segment.reports or run.resource >= run.limit
        if not run.tuned:
            run.trial.set_status(Trial.TERMINATED if over else Trial.PENDING)
            self._keep(run)
        elif action == TrialScheduler.STOP or over:
            run.trial.set_status(Trial.TERMINATED)
            if action != TrialScheduler.STOP:
                self._scheduler.on_trial_complete(self, run.trial, result)
            self._conclude(run)
        else:
            run.trial.set_status(Trial.PAUSED if action == TrialScheduler.PAUSE else Trial.PENDING)
            self._keep(run)
        if run.tuned:
            self._complete(self.completion.reported(self.objective(run)))

    def _follow(self, run: TrialRun, report: Report) -> None:
        if run.tuned:
            self.trained += report.step - run.resource
        self._comparison.take(run, report)

    def _lost(self, event: GangLost | GangEnded) -> None:
        """A gang lost its workers: its trial is served again from its last checkpoint, wherever there is room."""
        run = self._roster.lost(event.gang, ended=isinstance(event, GangEnded))
        self.ledger.lost(event.gang, run.id if run else "")
        if isinstance(event, GangEnded):
            self.ledger.ended(event.gang)
        if run is None:
            return
        reason = event.reason if isinstance(event, GangLost) else event.error
        if run is self._beside.probe:
            self._beside.lost_probe(reason)
            return
        run.attempts += 1
        if run.attempts >= self.search.max_attempts:
            self._fail(run, f"lost its workers {run.attempts} times, the last time with: {reason}")
        else:
            run.trial.set_status(Trial.PENDING)
            self._keep(run)

    def _diverge(self, run: TrialRun, reason: str, reports: Sequence[Report]) -> None:
        """Ends a trial whose numbers are not finite any more: at once, behind all others, and not as a failure."""
        for report in reports:
            self._follow(run, report)
        self._tell(run, reports)
        self._any_trained = True
        run.diverged, run.value, run.best_value, run.best_resource = reason, math.nan, math.nan, 0
        run.trial.set_status(Trial.TERMINATED)
        self._leave(run)

    def _fail(self, run: TrialRun, message: str, traceback: str = "", logs: str = "") -> None:
        run.failure, run.traceback, run.logs = message, traceback, logs
        run.trial.set_status(Trial.ERROR)
        self._leave(run)
        self._failures += run.tuned
        if self._failures >= FIRST_FAILURES and not self._any_trained and not self._stopping:
            self.hopeless = True
            self.stop(f"the first {self._failures} trials all failed")

    def _leave(self, run: TrialRun) -> None:
        """A trial that failed or diverged leaves its bracket."""
        if not run.tuned:
            self._keep(run)
            return
        self._scheduler.on_trial_error(self, run.trial)
        self._conclude(run)

    def _conclude(self, run: TrialRun) -> None:
        run.ended_at = self._memory.ended_at(run) or self._clock()
        if self._live.pop(run.id, None) is not None:
            self._demand.ended(run)
        lost = bool(run.failure or run.diverged)  # Searchers that learn take no value that is not finite.
        result = None if lost else self._comparison.result(run, run.resource, self.objective(run), {})
        self.search_alg.on_trial_complete(run.id, result=result, error=lost)
        self._keep(run)
        self._complete(self.completion.ended(math.nan if run.failure else self.objective(run), run.bracket))

    def _complete(self, reason: str) -> None:
        if reason and not self._stopping:
            self.completed = reason
            self.stop(reason)

    def _tell(self, run: TrialRun, reports: Sequence[Report]) -> None:
        if reports:
            self._record.reports(run, reports)

    def _keep(self, run: TrialRun) -> None:
        if run is not self._beside.probe:
            self._record.trial(run)
