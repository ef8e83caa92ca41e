"""Progress of a running job as plain lines, one for each event."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from hpo.cost import Countdown, Entry
from hpo.observers.counters import Tally
from hpo.ranking import Ranking
from hpo.search import (
    DRAIN_SECONDS,
    INTERRUPTED,
    STOP_REQUESTED,
    TERMINATED,
    UNTUNED,
    JobState,
    TrialRun,
    status_of,
)
from hpo.strategies import Cut, Plan
from hpo.text import count, first_line, no_model_text, roughly
from trainers.details import NO_MODEL, TRAINED_AGAIN, WARNINGS, WENT_ON_FROM
from trainers.gangs import Report
from trainers.patient_storage import BACK, away

STILL_RUNNING_SECONDS = 60.0
"""The longest silence of a job that runs."""

SAME_FAILURES = 3
"""How many trials that fail, or diverge, with the same words are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Goal of a job.

    Args:
        job: its name.
        metric: the objective.
        objective_type: "Maximize" or "Minimize".
        objective_value: "last" or "best".
        plan: its brackets.
        training: it is a single training, and no search.
        unit: what its users call a unit of resource.
        resume: how to resume it once it is stopped; empty where that is not possible.
    """

    job: str
    metric: str
    objective_type: str
    objective_value: str
    plan: Plan
    training: bool = False
    unit: str = "unit"
    resume: str = ""


class Progress:
    """Base of the plain lines and the live view; an `Observer`, and the block in which the job runs.

    Args:
        goal: what the job is after.
        say: prints a line.
        clock: seconds, on any clock that runs forward.
    """

    def __init__(self, goal: Goal, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.goal = goal
        self.taken_over = False
        """Whether a driver before this one may only stand still, and hold its gangs."""
        self.tally = Tally(plan=goal.plan, ranking=Ranking.of(goal.objective_type, goal.objective_value))
        # Kept, since a plan of many brackets adds them up each time.
        self._trials, self._resource = goal.plan.trials, goal.plan.resource
        self._say = say
        self._clock = clock
        self._began = clock()
        self._countdown = Countdown()
        self._failures: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._warned: set[str] = set()
        """Kinds of warnings that were said: other trials of the program would say the same."""
        self._been_up = False
        self._told_stop = self._told_away = self._told_again = self._told_no_model = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def trial(self, run: TrialRun) -> None:
        """See `Observer.trial`."""
        if self.tally.trial(run):
            self.improved(run)
        if (run.failure or run.diverged) and run.id not in self._failed:
            self._failed.add(run.id)
            self._tell_failure(run)
        again = run.details.get(TRAINED_AGAIN, 0)
        if again and not self._told_again:
            self._told_again = True
            older = run.details.get(WENT_ON_FROM, 0)
            reason, certain = "did not go on from a checkpoint of its rung", ""
            if older:
                reason = f"went on from its checkpoint of unit {older}"
                certain = ", and print its step, which says its unit for certain"
            self.say(
                f"warning: {run.id} trained {count(again, 'unit')} again, since it {reason}; others that are paused "
                f"will, too: let it save a checkpoint with each report, and go on from the newest one{certain}; the "
                "details of each trial have the number"
            )
        if run.details.get(NO_MODEL) and status_of(run) == "Completed" and not self._told_no_model:
            self._told_no_model = True
            self.say(f"warning: {run.id} has {no_model_text(run.details)}")
        for kind, text in run.details.get(WARNINGS, {}).items():
            if kind not in self._warned:
                self._warned.add(kind)
                self.say(f"warning: {run.id}: {text}")

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """See `Observer.reports`; the search counts them."""

    def rung(self, cut: Cut) -> None:
        """See `Observer.rung`."""
        self.tally.rung(cut)

    def ledger(self, entries: Sequence[Entry]) -> None:
        """See `Observer.ledger`; the ledger itself says what it adds up to."""

    def progress(self, state: JobState) -> None:
        """See `Observer.progress`."""
        self._been_up = self._been_up or state.gangs_up > 0
        self._countdown.see(self._clock(), state.seconds_left)
        if bool(state.storage_away) is not self._told_away:
            self._told_away = not self._told_away
            self.say(away(state.storage_away) if self._told_away else BACK)
        if state.stopped and not self._told_stop:
            self._told_stop = True
            self.say(stopping(state, self.goal.resume))

    def improved(self, run: TrialRun) -> None:
        """The best so far is another trial, or better."""

    def say(self, text: str) -> None:
        """Prints a line."""
        self._say(text)

    def left(self, state: JobState) -> str:
        """The remaining time, as far as it is known."""
        up = state.gangs_up
        if state.stopped:
            return "stopping: trials end at their next report"
        if state.storage_away:
            return "waiting for the storage of checkpoints"
        if self.tally.ended >= self._trials:
            return "the un-tuned run, for comparison" if state.untuned else "ending the gangs"
        if not up and not self._been_up:
            held = ", which the driver before this one may still hold" if self.taken_over else ""
            return "the first gang is starting" if state.gangs_starting else f"waiting for room on the cluster{held}"
        if not up:
            return "waiting for a gang"
        seconds = self._countdown.left(self._clock())
        return "measuring" if seconds is None else f"at most about {roughly(seconds)}"

    def _tell_failure(self, run: TrialRun) -> None:
        words = f"failed: {first_line(run.failure)}" if run.failure else f"diverged: {first_line(run.diverged)}"
        self._failures[words] += 1
        if self._failures[words] <= SAME_FAILURES:
            self.say(f"{'the un-tuned run' if run.id == UNTUNED else run.id} {words}")
        elif self._failures[words] == SAME_FAILURES + 1:
            do = "fail" if run.failure else "diverge"
            self.say(f"more trials {do} with the same words; they are counted, and named no more")


class PlainProgress(Progress):
    """One line an event, with the seconds since the start in front; a line a minute where nothing happens."""

    def __init__(self, goal: Goal, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(goal, say, clock)
        self._spoke = self._began
        self._gangs = (0, 0)

    def improved(self, run: TrialRun) -> None:
        """See `Progress.improved`."""
        self.say(f"{run.id}: {self.goal.metric} {self.tally.best_text} after {count(run.resource, 'unit')}")

    def rung(self, cut: Cut) -> None:
        """See `Observer.rung`."""
        super().rung(cut)
        self.say(
            f"bracket {cut.bracket + 1} of {len(self.goal.plan.brackets)} at {count(cut.resource, 'unit')}: "
            f"{len(cut.went_on)} went on, {len(cut.stopped)} stopped"
        )

    def progress(self, state: JobState) -> None:
        """See `Observer.progress`."""
        super().progress(state)
        self._tell_gangs(state)
        if self._clock() - self._spoke >= STILL_RUNNING_SECONDS:
            self.say(
                f"still running: {state.trained + state.ahead} of {self._resource} units, "
                f"{self.tally.ended} of {self._trials} trials ended, left: {self.left(state)}"
            )

    def say(self, text: str) -> None:
        """See `Progress.say`."""
        self._spoke = self._clock()
        super().say(f"{self._spoke - self._began:8.1f} s  {text}")

    def _tell_gangs(self, state: JobState) -> None:
        starting, up = state.gangs_starting, state.gangs_up
        before_starting, before_up = self._gangs
        self._gangs = (starting, up)
        if up != before_up:
            self.say(f"{count(up, 'gang')} up, {starting} starting")
        elif starting > before_starting:
            self.say("a gang is starting" if up else "the first gang is starting")


def stopping(state: JobState, resume: str) -> str:
    """Return the line for a request to stop.

    Args:
        state: the job's.
        resume: how to resume the job later; empty where that is not possible.
    """
    asked = state.stopped in (INTERRUPTED, TERMINATED, STOP_REQUESTED)  # Else a limit was reached.
    later = f"; to resume later: {resume}" if resume and asked else ""
    first = f"Trials end at their next report, within {DRAIN_SECONDS:.0f} s" if state.gangs_busy else "Gangs are ended"
    again = "; Ctrl-C again stops now" if state.stopped == INTERRUPTED else ""
    return f"stopping, {state.stopped}{later}. {first}{again}"
