"""Trials of a search from suggestion to end; to Ray Tune's schedulers, their controller."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from hpo.search.configurations import Configurations, Given, GivenValues, completion_of
from hpo.search.demand import Demand
from hpo.search.halts import PersonStops
from hpo.search.kinship import Forking, Sharing
from hpo.search.objective import Comparison
from hpo.search.observer import Record
from hpo.search.recall import CHOSEN, TOLD, Recall, Turns
from hpo.search.trial import PROBE, Search, Stopped, TrialRun, new_run, put_back
from hpo.strategies import LooksAhead, Verdict, rungs_of
from hpo.text import masked
from trainers.checkpoint import UNKNOWN
from trainers.gangs import Report, Segment, Served, merged


class Trials:
    """Lives of a search's trials; it knows nothing of gangs.

    Args:
        search: whose.
        searcher: any `ray.tune.search.Searcher`.
        scheduler: any `ray.tune.schedulers.TrialScheduler`.
        decode: turns what the searcher suggests into hyperparameters; values that a person gave follow it.
        record: what keeps them.
        recall: what is known of them already.
        clock: seconds since the epoch.
        end: asks the search to stop, and says whether it was not stopping yet.
    """

    def __init__(
        self,
        search: Search,
        *,
        searcher: Searcher,
        scheduler: TrialScheduler,
        decode: Callable[..., dict[str, Any]],
        record: Record,
        recall: Recall,
        clock: Callable[[], float],
        end: Callable[[str], bool],
    ) -> None:
        self.search = search
        self.runs: dict[str, TrialRun] = {}
        self._by_number: list[TrialRun] = []
        self.live: dict[str, TrialRun] = {}
        """Those that have not ended."""
        self.comparison = Comparison(search)
        self.objective = self.comparison.objective
        self.trained = 0
        """Units trained by all trials, the untuned run not counted."""
        self.search_alg = searcher
        self._forking = Forking(search, scheduler, recall)
        scheduler = self._forking.scheduler
        self.sharing = Sharing(search)
        self.rungs = rungs_of(scheduler)
        self.demand = Demand(search, self.rungs.plan)
        self.turns = Turns(recall.turns, kept=search.in_order)
        self.stops = PersonStops(search, record, scheduler, self.turns, conclude=self.conclude, result=self._result)
        self.completion = completion_of(search, self.rungs.plan)
        self._configurations = Configurations(search, searcher, self.completion, self.objective)
        self.verdict: Verdict | None = None
        """Why the job ends before its plan does."""
        self._enough = False
        """Whether a criterion is met, be it behind a stop: the job is then complete once it is resumed."""
        self._settled = 0
        """How many trials no criterion has still to look at."""
        self._scheduler: Any = scheduler  # Ray types its callers as its own controller.
        self._ahead = scheduler if isinstance(scheduler, LooksAhead) else None
        self._record = record
        self._given = GivenValues(search.points, record, decode)
        self._recall = recall
        self._clock = clock
        self._end = end
        if self.completion.asked:
            self.rungs.set_gate(self._may_go_on)
        self._cuts_told = 0

    @property
    def hopeless(self) -> bool:
        """Whether it was stopped since its first trials all failed."""
        return self.verdict is not None and self.verdict.hopeless

    # ---- what Ray Tune's schedulers call

    def get_trials(self) -> list[Trial]:
        """Every trial so far."""
        return [run.trial for run in self.runs.values()]

    def get_live_trials(self) -> set[Trial]:
        """Those that have not ended."""
        return {run.trial for run in self.live.values()}

    def stop_trial(self, trial: Trial) -> None:
        """Ends a trial that is pending or paused; one that is running ends at its next report."""
        run = self.runs[trial.trial_id]
        if trial.status == Trial.RUNNING:
            run.stops = True
        elif not trial.is_finished():
            trial.set_status(Trial.TERMINATED)
            self._scheduler.on_trial_remove(self, trial)
            self.conclude(run)

    def pause_trial(self, trial: Trial, should_checkpoint: bool = True) -> None:
        """Lets a trial wait that does not train; of one that does, the scheduler is asked at its next report."""
        if trial.status == Trial.PENDING:
            trial.set_status(Trial.PAUSED)

    # ---- what is trained next

    def choose(self) -> TrialRun | None:
        """The scheduler's choice, or a new trial; None for nothing yet."""
        self._look_ahead()
        trial = self._scheduler.choose_trial_to_run(self) or self._suggest()
        self._look_ahead()
        run = self.runs[trial.trial_id] if trial else None
        if run is not None and self.turns.take(run, CHOSEN):
            self.keep(run)
        return run

    def choose_known(self) -> TrialRun | None:
        """The same among those that there were before; None where all of them are there again, and none is next."""
        if self._knows_next or self._forking.population:
            self._look_ahead()
        trial = self._scheduler.choose_trial_to_run(self)
        if trial is None and self._knows_next:
            trial = self._suggest()
        if self._knows_next:
            self._look_ahead()
        return self.runs[trial.trial_id] if trial else None

    @property
    def _knows_next(self) -> bool:
        return self._recall.suggested(len(self.runs)) is not None

    def _may_go_on(self, trial: Trial) -> bool:
        run = self.runs[trial.trial_id]
        return self.completion.may_go_on(run.bracket, run.resource)

    def milestone(self, run: TrialRun) -> int:
        """The units at which its next assignment ends."""
        return self.sharing.until(run, self._rung(run))

    def _rung(self, run: TrialRun) -> int:
        """The units at which it is next compared with others, or ends."""
        if not run.tuned:
            return run.limit
        return min(run.phase.until, self.rungs.next_rung(run.trial, run.resource))

    def _look_ahead(self) -> None:
        """Shows the scheduler other trials, while it takes those that it has been shown for all that there are."""
        while self._ahead is not None and self._ahead.wants_another() and self._suggest() is not None:
            pass
        self._forking.check_whole(len(self.runs), self.demand.to_come)

    def _suggest(self) -> Trial | None:
        if self.demand.to_come < 1:
            return None
        number = len(self.runs)
        trial_id = f"{self.search.name}-{number:03d}"
        known = self._recall.suggested(number)
        if not self._configurations.begins(number):
            first = self._by_number[self._configurations.first(number)]
            return self._begin(number, trial_id, first.hyperparameters, Given(by=first.given, believed=first.believed))
        if known is not None and self._configurations.told_of_known:
            return self._begin(number, trial_id, known, Given())
        suggested = self.search_alg.suggest(trial_id)
        if suggested == Searcher.FINISHED:  # type: ignore[comparison-overlap]  # a string, against its own annotation
            self.demand.exhausted = True
            self._configurations.no_more(number)
            self.rungs.no_more_trials(self)
            chosen: Trial | None = self._scheduler.choose_trial_to_run(self)
            return chosen
        if suggested is None:
            return None
        if known is not None:  # If the searcher drew others than before, what was trained is what counts.
            return self._begin(number, trial_id, known, Given())
        drawn, given = self._given.over(self._configurations.configuration(number), suggested)
        return self._begin(number, trial_id, drawn, self._configurations.suggested(given))

    def _begin(self, number: int, trial_id: str, values: Mapping[str, Any], given: Given) -> Trial:
        """A trial begins, with these tuned values; of one that had begun before, the record says what gave them."""
        run = new_run(self.search, number, trial_id, values)
        run.given, run.believed = given.by, given.believed
        config = set(run.trial.config)
        self._configurations.begun(run)
        self._recall.begin(run)
        self.sharing.begin(run)
        self._given.took(run.given)
        self.runs[trial_id] = self.live[trial_id] = run
        self._by_number.append(run)
        self.demand.drawn(run)
        self._scheduler.on_trial_add(self, run.trial)
        run.hyperparameters |= {name: run.trial.config[name] for name in run.trial.config.keys() - config}
        run.bracket = self.rungs.bracket(run.trial)
        self.keep(run)
        return run.trial

    def _fork(self) -> None:
        """Carries out the forks that were decided: a trial ends where it stands, and another takes its place."""
        for ends, run in self._forking.decided(self.runs):
            if not ends.trial.is_finished():
                ends.trial.set_status(Trial.TERMINATED)
                self.conclude(ends)
            self.runs[run.id] = self.live[run.id] = run
            self._by_number.append(run)
            self.demand.forked(run)
            self.keep(run)

    def start_over(self, run: TrialRun) -> None:
        """A trial's checkpoint is gone: it trains its rungs again from the first. What was decided of them stays."""
        run.at_rung = run.at_rung or self.comparison.standing(run)
        self.trained -= run.tuned * run.resource
        self.sharing.start_over(run)
        run.resource, run.checkpoint, run.manifest, run.details = 0, None, UNKNOWN, {}

    # ---- what comes of it

    def tell_cuts(self) -> None:
        """Tells the record of rungs that were decided."""
        for cut in self.rungs.cuts[self._cuts_told :]:
            self._record.rung(cut)
            self._cuts_told += 1

    def booked(self, run: TrialRun, event: Served) -> None:
        """Takes what an assignment came to: a segment, a failure, or numbers that are not finite any more."""
        self.sharing.booked(run, event, self.milestone(run), whole=self.comparison.is_whole)
        run.logs = event.logs or run.logs
        if event.segment is not None:
            self._take_up(run, event.segment, self.stops.at_report(run, event))
        elif event.diverged:
            self._diverge(run, event.error, event.reports)
        else:
            self._record.reports(run, event.reports)
            self.fail(run, event.error, event.traceback, event.logs)

    def _take_up(self, run: TrialRun, segment: Segment, stopped: Stopped | None) -> None:
        """Books a segment and does what the scheduler says of it, or ends the trial as a person stopped it."""
        run.at_rung = run.at_rung or self.comparison.standing(run)
        run.checkpoint, run.manifest = segment.checkpoint, segment.manifest
        run.details = merged(run.details, segment.details)
        if missing := self.comparison.missing(segment.reports):
            self._record.reports(run, segment.reports)
            self.fail(run, missing)
            return
        if divergence := self.comparison.divergence(segment.reports):
            self._diverge(run, divergence, segment.reports)
            return
        rung, stop, action = self._rung(run), self.milestone(run), TrialScheduler.CONTINUE
        run.stops = run.stops or stopped is not None
        for report in segment.reports:
            self._follow(run, report)
            if run.tuned and report.step >= rung:
                self._configurations.reached(run, rung)
            if run.tuned and report.step > run.begins_at:
                action = self._ask(run, report)
        self._record.reports(run, segment.reports)
        if run.tuned and run.resource > run.at_rung["resource"] and not run.back:  # Else it trains that again.
            self.turns.take(run, TOLD)
        if run.resource >= max(stop, run.at_rung["resource"]):
            run.at_rung = {}
        over = not segment.reports or run.resource >= run.limit
        if not run.tuned:
            run.stopped = stopped
            run.trial.set_status(Trial.TERMINATED if over or stopped else Trial.PENDING)
            self.keep(run)
        elif stopped is not None:
            self.stops.end(self, run, stopped, at_rest=False)
        elif action == TrialScheduler.STOP or over:
            run.trial.set_status(Trial.TERMINATED)
            if action != TrialScheduler.STOP or run.stops:
                self._scheduler.on_trial_complete(self, run.trial, self._result(run))
            self.conclude(run)
        else:
            run.trial.set_status(Trial.PAUSED if action == TrialScheduler.PAUSE else Trial.PENDING)
            self.keep(run)
        self._fork()
        self._judge()

    def _result(self, run: TrialRun) -> dict[str, Any]:
        return self.comparison.result(run, run.resource, self.objective(run), run.metrics)

    def stop(self, run: TrialRun, stopped: Stopped) -> None:
        """Ends a trial that is on no gang, as a person stopped it."""
        self._recall.drop(run.id)
        self.stops.end(self, run, stopped, at_rest=True)
        self._fork()

    def stop_again(self, run: TrialRun) -> bool:
        """Ends a trial that was stopped at rest where it stands now; returns whether it was."""
        if (stopped := self.stops.again(run)) is not None:
            self.stop(run, stopped)
        return stopped is not None

    def _ask(self, run: TrialRun, report: Report) -> str:
        """Tells searcher and scheduler of a report; returns the scheduler's word."""
        result = self.comparison.result(run, report.step, self.objective(run), report.metrics)
        action: str = TrialScheduler.CONTINUE
        if not run.stops and (report.step < run.limit or not self._forking.population):  # One that is over forks none.
            # In Tune's order: `HyperBandForBOHB` writes into the result what its searcher reads.
            action = self._scheduler.on_trial_result(self, run.trial, result)
        self._configurations.reported(run, result)
        return TrialScheduler.STOP if run.stops else action

    def _follow(self, run: TrialRun, report: Report) -> None:
        if run.tuned:
            self.trained += report.step - run.resource
        self.comparison.take(run, report)

    def _diverge(self, run: TrialRun, reason: str, reports: Sequence[Report]) -> None:
        """Ends a trial whose numbers are not finite any more: at once, behind all others, and not as a failure."""
        run.diverged_from = run.at_rung.get("resource", run.resource)
        for report in reports:
            self._follow(run, report)
        self._record.reports(run, reports)
        if run.resource < run.diverged_from:
            self.trained -= put_back(run)
        run.diverged, run.value, run.best_value, run.best_resource = reason, math.nan, math.nan, 0
        run.trial.set_status(Trial.TERMINATED)
        self._leave(run)

    def fail(self, run: TrialRun, message: str, traceback: str = "", logs: str = "") -> None:
        """Ends a trial that failed, with the message and where it comes from: at its last rung, halted since or not.

        Both are masked: many readers see them, and a program's errors often quote the URL of a database.
        """
        self.trained -= put_back(run)
        run.failure, run.traceback, run.logs = masked(message), masked(traceback), logs or run.logs
        run.trial.set_status(Trial.ERROR)
        self._leave(run)

    def _leave(self, run: TrialRun) -> None:
        """A trial that failed or diverged leaves its bracket."""
        if not run.tuned:
            self.keep(run)
            return
        self._scheduler.on_trial_error(self, run.trial)
        self.turns.take(run, TOLD)
        self.conclude(run)
        self._fork()

    def conclude(self, run: TrialRun) -> None:
        """A trial has ended, as its status says; one that trains its rungs again stands at the last that it had."""
        if run.resource < run.at_rung.get("resource", 0):
            self.trained -= put_back(run)
        run.ended_at = self._recall.ended_at(run) or self._clock()
        if self.live.pop(run.id, None) is not None:
            self.demand.ended(run)
        self._configurations.ended(run, self.comparison.result(run, run.resource, self.objective(run), {}))
        if not run.cut:
            run.judged = not self.completion.open
        self.keep(run)
        self._judge()

    def _judge(self) -> None:
        """Looks whether the job is complete, in the order of suggestion; no further than where it is."""
        if self._enough:
            return
        verdict = self._configurations.judge()
        judged = self._by_number[self._settled : self._configurations.judged]
        self._settled += len(judged)
        self._settle([run for run in judged if not run.judged])
        self._enough = verdict is not None
        if verdict is not None and self._end(verdict.reason):
            self.verdict = verdict

    def counts(self, number: int) -> bool:
        """Whether the trial of that number is one of those that the job comes to."""
        return self.verdict is None or number <= self.verdict.last

    def leave_out(self) -> None:
        """Once every trial has ended: those behind the one at which the job was complete do not count."""
        if self.verdict is not None:
            self._settle([run for run in self._by_number if not run.judged])
            self._record.leave_out(self.verdict.last)
        if self.verdict is not None or not (self.demand.to_come or any(run.cut for run in self._by_number)):
            for run in self.sharing.over():
                self.keep(run)

    def _settle(self, runs: Sequence[TrialRun]) -> None:
        """No criterion has still to look at these; one that does not count has no value."""
        for run in runs:
            run.judged = True
            if not self.counts(run.number):
                run.ahead, run.metrics, run.back, run.at_rung = True, {}, {}, {}
                run.value = run.best_value = math.nan
                run.best_resource = 0
            self.keep(run)

    def keep(self, run: TrialRun) -> None:
        """Tells the record of a trial as it is now."""
        if not run.tuned and run.trial.is_finished():  # The others are concluded.
            run.ended_at = run.ended_at or self._recall.ended_at(run) or self._clock()
        if run.id != PROBE:
            self._record.trial(run)
