"""Dispatch: the next work of free gangs, and requests for more gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from ray.tune.experiment import Trial

from hpo.cost import Budget, Ledger
from hpo.search.reference_runs import Beside
from hpo.search.roster import Roster
from hpo.search.trial import Search, TrialRun, next_assignment
from hpo.search.trials import Trials
from hpo.text import count
from trainers.errors import SearchError
from trainers.gangs import Gangs


class Dispatch:
    """Hands out a search's assignments.

    Args:
        search: what to carry out.
        trials: what the scheduler chooses from.
        beside: the runs beside them.
        gangs: what executes.
        roster: which of them there are, and what they serve.
        budget: what may be paid.
        ledger: is told what gangs are held for.
        clock: seconds since the epoch; it does not jump.
        stop: asks the search to stop, and says why.
    """

    def __init__(
        self,
        search: Search,
        *,
        trials: Trials,
        beside: Beside,
        gangs: Gangs,
        roster: Roster,
        budget: Budget,
        ledger: Ledger,
        clock: Callable[[], float],
        stop: Callable[[str], None],
    ) -> None:
        self._search = search
        self._trials = trials
        self._demand = trials.demand
        self._beside = beside
        self._gangs = gangs
        self._roster = roster
        self._budget = budget
        self._ledger = ledger
        self._clock = clock
        self._stop = stop
        self._idle_since: float | None = None
        """Since when gangs are free, trials are to come, and nobody has one."""
        self._chosen: list[TrialRun] = []
        """Trials that are to be trained next and wait for a gang of their size; each has a place of those at once."""
        self._waiting: list[TrialRun] = []
        """Trials whose next part another trains, without a gang; where it comes to nothing, they are chosen again."""

    def hand_out(self) -> None:
        """What waits for a gang of its size comes first, then what the free gangs' other places hold; then gangs."""
        self._gone(self._gangs.give_back())
        self._look_who_waits()
        self._chosen = [run for run in self._chosen if not run.trial.is_finished() and not self._given(run)]
        while self._roster.free and self._places < self._search.max_parallel_jobs and self._trials.verdict is None:
            run = self._next()
            if run is None:
                break
            run.trial.set_status(Trial.RUNNING)  # Nobody chooses it again while it waits.
            if not self._given(run):
                self._chosen.append(run)
        # What is left was not chosen, and may wait for what is chosen here.
        self._chosen = [run for run in self._chosen if not self._assign(run, at_any_cost=True)]
        at_work = [*self._chosen, *(work.run for work in self._roster.busy.values())]
        sizes = self._demand.sizes(at_work, self._roster.sizes.values(), untuned_left=self._beside.untuned_left)
        self._want(sizes)

    @property
    def _places(self) -> int:
        """Of trials at once, those that are taken.

        One that waits for another has none, so that gangs have work meanwhile; but where decisions follow from the
        order of results, no more trials begin than would without it.
        """
        return len(self._roster.busy) + len(self._chosen) + self._search.in_order * len(self._waiting)

    def _look_who_waits(self) -> None:
        """Gives trials that wait for another what it trained; those for which nobody trains are to be chosen again."""
        waiting, self._waiting = self._waiting, []
        for run in waiting:
            if not run.trial.is_finished() and not self._shared(run):
                run.trial.set_status(Trial.PENDING)
                self._trials.keep(run)

    def _given(self, run: TrialRun) -> bool:
        """Gives a trial what it needs next: what another trained, or that it waits for that, or a gang; if it can."""
        return self._shared(run) or self._assign(run)

    def _shared(self, run: TrialRun) -> bool:
        """Whether another trial trained a trial's next part, which it then has, or trains it, so that it waits."""
        stop = self._trials.milestone(run)
        if (served := self._trials.sharing.taken(run, stop)) is not None:
            run.started_at = run.started_at or self._clock()
            self._trials.booked(run, served)
            self._trials.tell_cuts()  # Nothing more may come back from gangs.
            return True
        at_work = ((work.run, work.assignment.stop) for work in self._roster.busy.values())
        if self._trials.sharing.is_trained(run, stop, at_work):
            self._waiting.append(run)
            return True
        return False

    def _want(self, sizes: dict[int, int]) -> None:
        """Says which gangs could be busy, as far as they can be paid; stops where nothing can go on without others."""
        there = Counter(self._roster.sizes.values())
        paid = self._budget.pays_for(sizes, there, self._gangs.starting)
        self._gone(self._gangs.want(paid, self.gang_seconds_left))
        unpaid = [workers for workers in sizes if paid[workers] < sizes[workers]]
        to_come = self._gangs.starting or any(paid[workers] > there[workers] for workers in paid)
        if unpaid and not self._roster.busy and not to_come:
            self._stop(self._budget.short_of(unpaid[0]))

    def _gone(self, gangs: Collection[str]) -> None:
        """Idle gangs were given back."""
        for gang in gangs:
            self._roster.released(gang)
            self._ledger.ended(gang)

    def _assign(self, run: TrialRun, *, at_any_cost: bool = False) -> bool:
        """Hands a trial's next assignment to a free gang of its size, if there is one; see `Roster.free_one`."""
        gang = self._roster.free_one(run, at_any_cost=at_any_cost)
        if gang is None:
            return False
        if run.resource and not run.checkpoint:
            self._trials.start_over(run)
        assignment = next_assignment(self._search, run, self._trials.milestone(run))
        self._ledger.assigned(gang)
        self._roster.begin(gang, run, assignment)
        run.started_at = run.started_at or self._clock()
        self._gangs.assign(gang, assignment)
        self._trials.keep(run)
        return True

    def _next(self) -> TrialRun | None:
        """The probe first; then what the scheduler chooses, a new trial, or the untuned run; None for nothing yet."""
        if self._beside.measuring:
            return None
        if (probe := self._beside.before()) is not None:
            return probe
        return self._trials.choose() or self._beside.after()

    def nothing_left(self) -> bool:
        """Whether all that there was to train has ended.

        Raises:
            SearchError: the scheduler neither runs nor ends what is left, or the searcher suggests nothing.
        """
        unfinished = len(self._trials.live)
        new = self._demand.to_come > 0
        stuck = self._roster.free and not self._chosen
        names = ", ".join(list(self._trials.live)[:5])
        if stuck and unfinished and not new:
            raise SearchError(f"the scheduler neither runs nor ends {count(unfinished, 'trial')}: {names}")
        if not (stuck and new):
            self._idle_since = None
            return not unfinished and self._beside.finished and not new
        self._idle_since = self._idle_since or self._clock()
        if (seconds := self._clock() - self._idle_since) >= self._search.patience:
            waiting = f", and {names} wait" if unfinished else ""
            raise SearchError(
                f"the searcher suggested nothing for {seconds:.0f} s in which nothing trained: "
                f"{self._demand.to_come} of {count(self._search.max_jobs, 'trial')} are still to come{waiting}"
            )
        return False

    @property
    def gang_seconds_left(self) -> float | None:
        """Gang-seconds of work left at most; None before enough is known."""
        return self._demand.seconds_left(self._trials.trained, self._roster.longest)
