"""Halts: what becomes of trials that end on their way, as a person, a limit or their job stops them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ray.tune.experiment import Trial

from hpo.record import MAX_TRIAL_RUNTIME, MAX_TRIAL_WAIT
from hpo.search.observer import Record
from hpo.search.recall import STOPPED, Turns
from hpo.search.roster import Roster
from hpo.search.trial import PROBE, Search, Stopped, TrialRun, goes_on_from
from hpo.strategies import Waits, rungs_of
from trainers.gangs import Assignment, Gangs, Segment, Served


class PersonStops:
    """Stops of trials by persons, which their job obeys: at the next report of a trial that trains, else at once.

    A trial that has used up its time is stopped likewise, by the limit.

    What was decided has to be decided again where the job is resumed, also in another order. So a trial's row says
    where the stop took effect, and whether the scheduler had decided of it there before. One that waits at a rung for
    others leaves it without being compared, as if it had been stopped before it came there; in a search whose decisions
    follow from the order of results, the stop has a turn of its own instead.

    Args:
        search: whose trials.
        record: has the requests.
        scheduler: the search's.
        turns: the search's.
        conclude: ends a trial, whatever its scheduler says.
        result: what a trial has come to, in Ray Tune's form.
    """

    def __init__(
        self,
        search: Search,
        record: Record,
        scheduler: Any,
        turns: Turns,
        *,
        conclude: Callable[[TrialRun], None],
        result: Callable[[TrialRun], dict[str, Any]],
    ) -> None:
        self._search = search
        self._limited: dict[str, str] = {}
        """Trials that have used up their time, by id, and which limit says so."""
        self._in_order = search.in_order
        self._record = record
        self._scheduler = scheduler
        self._planned = rungs_of(scheduler).plan is not None
        self._waits: Callable[[Trial], bool] = scheduler.waits if isinstance(scheduler, Waits) else lambda trial: False
        self._turns = turns
        self._conclude, self._result = conclude, result

    @property
    def _by(self) -> Mapping[str, str]:
        """By what trials are to be stopped."""
        return {**self._limited, **self._record.stops} if self._limited else self._record.stops

    def asked(self, run: TrialRun) -> bool:
        """Whether a person asked for a trial to be stopped, or its time is over."""
        return run.id in self._by

    def _limit(self, roster: Roster) -> None:
        """Finds the trials that have used up their time, of those that are on a gang or wait for one."""
        longest, in_all = self._search.max_trial_runtime, self._search.max_trial_wait
        if math.isinf(min(longest, in_all)):
            return
        for run in (*(work.run for work in list(roster.busy.values())), *(run for run, _ in roster.waiting.values())):
            served, waited = roster.seconds(run)
            if run.id != PROBE and served >= longest:
                self._limited.setdefault(run.id, MAX_TRIAL_RUNTIME)
            elif run.id != PROBE and served + waited >= in_all:
                self._limited.setdefault(run.id, MAX_TRIAL_WAIT)

    def at_report(self, run: TrialRun, served: Served) -> Stopped | None:
        """The stop that takes effect with a segment; None where none does.

        A trial that has come to its end with it, or that its scheduler stopped before, ends by that.
        """
        segment = served.segment
        if segment is None or not segment.reports or run.stops or segment.reached >= run.limit:
            return None
        if not served.gang:  # The run before came to it.
            known = run.stop_known
            return known if known is not None and not known.told and known.at == segment.reached else None
        if not self.asked(run):
            return None
        rung = run.at_rung.get("resource", 0)  # Trained again after a loss, it stands at the rung that it had reached.
        at = max(rung, segment.reached)
        return Stopped(by=self._by[run.id], at=at, told=rung > segment.reached)

    def at_rest(self, run: TrialRun) -> Stopped:
        """The stop of a trial that is on no gang."""
        at = max(run.resource, run.at_rung.get("resource", 0))
        told = self._in_order or not self._waits(run.trial)
        return Stopped(by=self._by[run.id], at=at, told=told)

    def again(self, run: TrialRun) -> Stopped | None:
        """The stop at rest that the run before came to, of a trial that stands there again and would go on."""
        known = run.stop_known
        return known if known is not None and known.told and known.at == run.resource else None

    def end(self, controller: object, run: TrialRun, stopped: Stopped, *, at_rest: bool) -> None:
        """Ends a trial, and tells the scheduler.

        Args:
            controller: the one of Ray Tune's scheduler.
            run: the trial.
            stopped: the stop.
            at_rest: it is on no gang; else it has just reported.
        """
        if at_rest:
            self._turns.take(run, STOPPED)
        run.stopped = stopped
        run.trial.set_status(Trial.TERMINATED)
        self._conclude(run)  # First, so that its row is written before those of trials that this decides.
        if at_rest or self._planned:
            self._scheduler.on_trial_remove(controller, run.trial)
        else:
            self._scheduler.on_trial_complete(controller, run.trial, self._result(run))

    def obey(
        self, trials: Mapping[str, TrialRun], roster: Roster, gangs: Gangs, stop: Callable[[TrialRun, Stopped], None]
    ) -> None:
        """Ends the trials that are to be stopped and are on no gang, and halts those that are on one.

        Args:
            trials: all, by id.
            roster: says which are on a gang.
            gangs: what executes.
            stop: ends one.
        """
        self._limit(roster)
        for gang, work in roster.busy.items():
            if self.asked(work.run) and not work.halted:
                work.halted = True
                gangs.halt(gang)
        serving = {work.run.id for work in roster.busy.values()}
        for trial_id in list(self._by):
            run = trials.get(trial_id)
            if run is not None and not run.trial.is_finished() and trial_id not in serving:
                stop(run, self.at_rest(run))

    def halt(self, roster: Roster, gangs: Gangs) -> None:
        """Halts those on a gang; from another thread, where the search's own trains and hears nothing meanwhile."""
        self._limit(roster)
        for gang, work in list(roster.busy.items()):
            if self.asked(work.run):
                gangs.halt(gang)


def goes_back(
    search: Search, run: TrialRun, segment: Segment, assignment: Assignment, *, whole: bool, stopping: bool
) -> bool:
    """Whether a trial was halted on its way and stands at its rung again, as it cannot go on exactly from there.

    If the job stops, what it reached is kept all the same, and beside it what it goes on from.

    Args:
        search: whose trial.
        run: the trial.
        segment: what came of its assignment.
        assignment: the assignment.
        whole: whether nothing is wrong with the segment's numbers; what is wrong is said of all of it.
        stopping: the job stops.
    """
    if not segment.reports or segment.reached >= assignment.stop:
        return False
    if whole and search.exact_from(run.trial.config):
        return False
    if whole and stopping:
        run.back = goes_on_from(run)
        return False
    return True
