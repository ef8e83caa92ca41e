"""The one loop: Ray Tune's searcher and scheduler decide, gangs execute, the record keeps what comes back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from hpo.completion import Completion
from hpo.hyperband import Cut
from hpo.ledger import Entry, Ledger
from hpo.pace import Pace
from hpo.scheduler import RESOURCE, SynchronousHyperBandScheduler
from hpo.search import PROBE, UNTUNED, Search, TrialRun, derive_seed
from trainers import storage
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

DRAIN_SECONDS = 10.0
"""How long a job that is stopped waits for what its gangs are serving."""

FIRST_FAILURES = 5
"""A job whose first so many trials all fail, while nothing has been trained, is not going to get better."""

STOP_REQUESTED = "stop requested"
OUT_OF_TIME = "max_runtime_in_seconds reached"


class Record(Protocol):
    """What keeps a job's trials, reports and billed seconds as they come."""

    @property
    def stop_requested(self) -> bool:
        """Whether somebody asked for the job to be stopped."""

    def trial(self, run: TrialRun) -> None:
        """A trial's state changed."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """A trial reported."""

    def ledger(self, entries: list[Entry]) -> None:
        """Worker-seconds were billed."""

    def rung(self, cut: Cut) -> None:
        """A rung of Hyperband was decided."""

    def progress(self, controller: Controller) -> None:
        """The loop goes round: before it waits for events, `poll_seconds` at most while gangs are on Ray."""


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
        on_probe: is told what the measured probe gave, the seconds from the start until the first gang was up, and
            those from handing the probe out to having it back.
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
        on_probe: Callable[[Segment, float, float], None] = lambda segment, start, served: None,
        clock: Callable[[], float] = time.time,
        poll_seconds: float = 0.5,
    ) -> None:
        self.search = search
        self.runs: dict[str, TrialRun] = {}
        self.untuned: TrialRun | None = None
        self.probe: TrialRun | None = None
        self._probes = list(search.probes)
        self._first_up_at = math.inf
        self.started_at = clock()
        self.trained = 0
        """Units trained by all trials, the untuned run not counted."""
        self.first_step_at: float | None = None
        self.ledger = Ledger(record.ledger, clock)
        self.search_alg = searcher
        self._scheduler: Any = scheduler  # Ray types its callers as its own controller.
        self._decode = decode
        self._gangs = gangs
        self._record = record
        self._on_probe = on_probe
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._live: dict[str, TrialRun] = {}
        self._free: list[str] = []
        self._busy: dict[str, tuple[TrialRun, Assignment]] = {}
        self._heard: dict[str, float] = {}
        self._assigned_at: dict[str, float] = {}
        self._exhausted = False
        self._most_units = self._most_assignments = search.max_jobs * search.max_resource
        plan = scheduler.plan if isinstance(scheduler, SynchronousHyperBandScheduler) else None
        if plan is not None:
            self._most_units = plan.resource
            self._most_assignments = sum(sum(bracket.sizes) for bracket in plan.brackets)
        self._stopping = ""
        self.completed = ""
        """Which completion criterion was met; empty if none was."""
        self.completion = Completion(search.completion, plan, maximize=search.mode == "max")
        self.hopeless = False
        """Whether it was stopped since its first trials all failed."""
        self._failures = 0
        self._any_trained = False
        self._cuts_told = 0
        self._pace = Pace()
        sign = 1.0 if search.mode == "max" else -1.0
        self._better: Callable[[float, float], bool] = lambda new, old: sign * new > sign * old

    def run(self) -> None:
        """Runs until every trial has ended, or a stop is asked for; closes the gangs either way.

        Raises:
            ResourcesError: the cluster holds no gang.
            GangError: gangs cannot start or serve.
        """
        try:
            while not self._stopping:
                self._hand_out()
                if not self._busy and self._nothing_left():
                    break
                self._listen()
            self._drain()
            self._record.progress(self)
            self._abandon()
        except KeyboardInterrupt:
            self._gangs.close(now=True)
            raise
        finally:
            self._gangs.close()
            self.ledger.close()

    def stop(self, reason: str) -> None:
        """Hands out nothing more; `run` returns when what is being served is back, or after `DRAIN_SECONDS`."""
        self._stopping = reason

    @property
    def seconds(self) -> float:
        """Since the start, on the controller's clock."""
        return self._clock() - self.started_at

    @property
    def gangs_busy(self) -> int:
        """Gangs that are serving an assignment."""
        return len(self._busy)

    @property
    def gangs_idle(self) -> int:
        """Gangs that are up and have nothing to serve."""
        return len(self._free)

    @property
    def gangs_starting(self) -> int:
        """Gangs that are on their way."""
        return self._gangs.starting

    def seconds_left(self) -> float | None:
        """Wall seconds that the rest takes at most, at the pace so far; None before enough is known.

        It counts the gangs that are up: more of them shorten it, and so does what Hyperband still stops.
        """
        left = self._seconds_left()
        up = len(self._busy) + len(self._free)
        return None if left is None or not up else left / up

    @property
    def stopped(self) -> str:
        """Why the run was stopped; empty if it was not."""
        return self._stopping

    def best(self) -> TrialRun | None:
        """The trial with the best objective; ties to the less resource, then to the first. None if none is finite."""
        sign = -1.0 if self.search.mode == "max" else 1.0
        finite = (run for run in self.runs.values() if math.isfinite(self.objective(run)) and not run.failure)
        return min(finite, key=lambda run: (sign * self.objective(run), self.resource(run), run.number), default=None)

    def resource(self, run: TrialRun) -> int:
        """The units that a trial's objective took."""
        return run.best_resource if self.search.best_value else run.resource

    def objective(self, run: TrialRun) -> float:
        """What trials are compared by: the last value, or the best one where the search says so."""
        return run.best_value if self.search.best_value else run.value

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
            self._scheduler.on_trial_complete(self, trial, self._result(run, run.resource, run.value, {}))
        else:
            self._scheduler.on_trial_remove(self, trial)
        self._conclude(run)

    def pause_trial(self, trial: Trial, should_checkpoint: bool = True) -> None:
        """Lets a trial wait; it has been checkpointed at the end of its assignment."""
        trial.set_status(Trial.PAUSED)

    def _drain(self) -> None:
        deadline = self._clock() + DRAIN_SECONDS
        while self._busy and self._clock() < deadline:
            self._listen()

    def _abandon(self) -> None:
        """Ends what a stop left waiting, so that nothing looks as if it were still to come."""
        for run in list(self._live.values()):
            run.trial.set_status(Trial.TERMINATED)
            self._conclude(run)

    # ---- handing out work

    def _hand_out(self) -> None:
        self._gangs.want(self._could_be_busy(), self._seconds_left())
        while self._free and len(self._busy) < self.search.max_parallel_jobs:
            run = self._next()
            if run is None:
                return
            gang = self._free.pop(0)
            assignment = self._assignment(run)
            self.ledger.assigned(gang)
            self._busy[gang] = (run, assignment)
            self._heard[gang] = self._assigned_at[gang] = self._clock()
            run.trial.set_status(Trial.RUNNING)
            run.started_at = run.started_at or self._clock()
            self._gangs.assign(gang, assignment)
            self._keep(run)

    def _next(self) -> TrialRun | None:
        """The probe first; then what the scheduler chooses, a new trial, or the untuned run; None for nothing yet."""
        if self.probe is not None and not self.probe.trial.is_finished():
            return None  # Nothing else runs while it is measured.
        if self._probes:
            self.probe = self._beside(PROBE, -2, self._probes.pop(0))
            return self.probe
        trial = self._scheduler.choose_trial_to_run(self)
        if trial is None:
            trial = self._suggest()
        if trial is not None:
            return self.runs[trial.trial_id]
        if self.search.untuned and self.untuned is None:
            self.untuned = self._beside(UNTUNED, -1, self._limit(self.search.static))
            return self.untuned
        if self.untuned is not None and self.untuned.trial.status == Trial.PENDING:
            return self.untuned  # It lost its workers.
        return None

    def _beside(self, trial_id: str, number: int, limit: int) -> TrialRun:
        """A run beside the search, with the trainer's own hyperparameters."""
        return TrialRun(
            trial=Trial("warmband", trial_id=trial_id, config=dict(self.search.static), stub=True),
            number=number,
            hyperparameters={},
            seed=derive_seed(self.search.seed, trial_id),
            limit=limit,
        )

    def _suggest(self) -> Trial | None:
        if self._exhausted or len(self.runs) >= self.search.max_jobs:
            return None
        number = len(self.runs)
        trial_id = f"{self.search.name}-{number:03d}"
        suggested = self.search_alg.suggest(trial_id)
        if suggested == Searcher.FINISHED:  # type: ignore[comparison-overlap]  # a string, against its own annotation
            self._exhausted = True
            if isinstance(self._scheduler, SynchronousHyperBandScheduler):
                self._scheduler.no_more_trials(self)
            chosen: Trial | None = self._scheduler.choose_trial_to_run(self)
            return chosen
        if suggested is None:
            return None
        hyperparameters = self._decode(suggested)
        trial = Trial("warmband", trial_id=trial_id, config={**self.search.static, **hyperparameters}, stub=True)
        run = TrialRun(
            trial=trial,
            number=number,
            hyperparameters=hyperparameters,
            seed=derive_seed(self.search.seed, number),
            limit=self._limit(trial.config),
        )
        self.runs[trial_id] = self._live[trial_id] = run
        self._scheduler.on_trial_add(self, trial)
        if isinstance(self._scheduler, SynchronousHyperBandScheduler):
            run.bracket = self._scheduler.bracket(trial)
        self._keep(run)
        return trial

    def _limit(self, hyperparameters: dict[str, Any]) -> int:
        lengths = [int(hyperparameters[name]) for name in self.search.length_names if name in hyperparameters]
        return min([self.search.max_resource, *lengths[:1]])

    def _assignment(self, run: TrialRun) -> Assignment:
        if not run.tuned:
            stop = run.limit
        elif isinstance(self._scheduler, SynchronousHyperBandScheduler):
            stop = min(run.limit, self._scheduler.milestone(run.trial))
        else:
            stop = min(run.limit, run.resource + 1)
        return Assignment(
            trial_id=run.id,
            hyperparameters=run.trial.config,
            seed=run.seed,
            start=run.resource,
            stop=stop,
            checkpoint=run.checkpoint,
            save_to=storage.join(self.search.storage_path, run.id, f"{stop:06d}{self.search.suffix}"),
        )

    def _could_be_busy(self) -> int:
        """How many gangs the work could keep busy at present."""
        # Those that have not ended and are not being served wait; few are served, however many have not ended.
        waiting = len(self._live) - sum(run.id in self._live for run, _ in self._busy.values())
        new = 0 if self._exhausted else self.search.max_jobs - len(self.runs)
        least = 1 if self.search.untuned and self.untuned is None else 0
        return max(least, min(self.search.max_parallel_jobs, len(self._busy) + waiting + new))

    def _seconds_left(self) -> float | None:
        """Gang-seconds of work left at most, from what assignments have cost so far; None before enough is known."""
        running = max((self._clock() - self._assigned_at[gang] for gang in self._busy), default=0.0)
        units = max(0, self._most_units - self.trained)
        return self._pace.seconds_left(units, max(0, self._most_assignments - self._pace.assignments), running)

    def _nothing_left(self) -> bool:
        unfinished = len(self._live)
        untuned = self.search.untuned and (self.untuned is None or not self.untuned.trial.is_finished())
        new = not self._exhausted and len(self.runs) < self.search.max_jobs
        if unfinished and self._free and not new:
            names = ", ".join(list(self._live)[:5])
            raise GangError(f"the scheduler neither runs nor ends {unfinished} trials: {names}")
        return not unfinished and not untuned and not new

    # ---- taking in what comes back

    def _listen(self) -> None:
        self._record.progress(self)
        for event in self._gangs.events(self._poll_seconds):
            self._take_in(event)
        if self._record.stop_requested and not self._stopping:
            self.stop(STOP_REQUESTED)
        if self._clock() - self.started_at > self.search.max_seconds and not self._stopping:
            self.stop(OUT_OF_TIME)
        patience = self.search.patience
        for gang in [gang for gang in self._busy if self._clock() - self._heard[gang] > patience]:
            self._heard[gang] = self._clock()
            self._gangs.recycle(gang, f"no report of {self._busy[gang][0].id} for {patience:.0f} s")
        self._tell_cuts()

    def _tell_cuts(self) -> None:
        if isinstance(self._scheduler, SynchronousHyperBandScheduler):
            cuts = self._scheduler.core.cuts
            for cut in cuts[self._cuts_told :]:
                self._record.rung(cut)
            self._cuts_told = len(cuts)

    def _take_in(self, event: Event) -> None:
        match event:
            case GangUp():
                self._first_up_at = min(self._first_up_at, self._clock())
                self.ledger.up(event.gang, self._gangs.workers, self._gangs.held_since(event.gang))
                self._free.append(event.gang)
            case Progress():
                self._heard[event.gang] = self._clock()
                if event.gang in self._busy and self._busy[event.gang][0] is not self.probe:
                    self._record.reports(self._busy[event.gang][0], event.reports)
            case Served():
                if event.gang in self._busy and self._busy[event.gang][0].id == event.trial_id:
                    self._served(event, *self._busy.pop(event.gang))
                    self._free.append(event.gang)
            case GangLost() | GangEnded():
                self._lost(event)

    def _served(self, event: Served, run: TrialRun, assignment: Assignment) -> None:
        self.ledger.served(event.gang, run.id, event.segment)
        if run is self.probe:
            run.trial.set_status(Trial.TERMINATED)
            if event.segment is not None and not self._probes:
                start, served = self._first_up_at - self.started_at, self._clock() - self._assigned_at[event.gang]
                self._on_probe(event.segment, start, served)
            return
        if event.segment is None:
            if event.diverged:
                self._diverge(run, event.error, event.reports)
            else:
                self._record.reports(run, event.reports)
                self._fail(run, event.error, event.traceback, event.logs)
            return
        self._pace.served(assignment.stop - assignment.start, self._clock() - self._assigned_at[event.gang])
        if self.first_step_at is None:
            self.first_step_at = event.segment.first_step_at
        self._take_up(run, event.segment)

    def _take_up(self, run: TrialRun, segment: Segment) -> None:
        """Books a segment and does what the scheduler says of it."""
        run.checkpoint, run.checkpoint_bytes = segment.checkpoint, segment.checkpoint_bytes
        run.details = merged(run.details, segment.details)
        metric = self.search.metric
        for report in segment.reports:
            if metric not in report.metrics:
                self._record.reports(run, segment.reports)
                self._fail(run, f"it reported no {metric!r}, which trials are compared by, but {_names(report)}")
                return
        for report in segment.reports:
            if not math.isfinite(report.metrics[metric]):
                self._diverge(run, f"{metric} is {report.metrics[metric]} at unit {report.step}", segment.reports)
                return
        self._any_trained = True
        action = TrialScheduler.CONTINUE
        for report in segment.reports:
            self._follow(run, report)
            if run.tuned:
                result = self._result(run, report.step, self.objective(run), report.metrics)
                self.search_alg.on_trial_result(run.id, result)
                action = self._scheduler.on_trial_result(self, run.trial, result)
        self._record.reports(run, segment.reports)
        over = not segment.reports or run.resource >= run.limit
        if not run.tuned:
            run.trial.set_status(Trial.TERMINATED)
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
        run.resource = report.step
        run.value = report.metrics.get(self.search.metric, math.nan)
        improved = math.isfinite(run.value) and (math.isnan(run.best_value) or self._better(run.value, run.best_value))
        if improved:
            run.best_value, run.best_resource = run.value, report.step
        if improved or not self.search.best_value:
            run.metrics = report.metrics

    def _result(self, run: TrialRun, step: int, value: float, metrics: dict[str, float]) -> dict[str, Any]:
        """A report in the form that Ray Tune's searchers and schedulers take."""
        return {
            **metrics,
            self.search.metric: value,
            RESOURCE: step,
            "training_iteration": step,
            "trial_id": run.id,
            "config": run.trial.config,
        }

    def _lost(self, event: GangLost | GangEnded) -> None:
        """A gang lost its workers: its trial is served again from its last checkpoint, wherever there is room."""
        run, _ = self._busy.pop(event.gang, (None, None))
        self.ledger.lost(event.gang, run.id if run else "")
        if isinstance(event, GangEnded):
            self.ledger.ended(event.gang)
        if event.gang in self._free:
            self._free.remove(event.gang)
        if run is None:
            return
        if run is self.probe:
            self._probes.clear()
            run.trial.set_status(Trial.ERROR)
            return
        run.attempts += 1
        reason = event.reason if isinstance(event, GangLost) else event.error
        if run.attempts >= self.search.max_attempts:
            self._fail(run, f"lost its workers {run.attempts} times, the last time with: {reason}")
        else:
            run.trial.set_status(Trial.PENDING)
            self._keep(run)

    def _diverge(self, run: TrialRun, reason: str, reports: Sequence[Report]) -> None:
        """Ends a trial whose numbers are not finite any more: at once, behind all others, and not as a failure."""
        for report in reports:
            self._follow(run, report)
        self._record.reports(run, reports)
        self._any_trained = True
        run.diverged, run.value, run.best_value, run.best_resource = reason, math.nan, math.nan, 0
        run.trial.set_status(Trial.TERMINATED)
        if not run.tuned:
            self._keep(run)
            return
        self._scheduler.on_trial_error(self, run.trial)  # It leaves its bracket as one that failed does.
        self._conclude(run)

    def _fail(self, run: TrialRun, message: str, traceback: str = "", logs: str = "") -> None:
        run.failure, run.traceback, run.logs = message, traceback, logs
        run.trial.set_status(Trial.ERROR)
        if not run.tuned:
            self._keep(run)
            return
        self._scheduler.on_trial_error(self, run.trial)
        self._conclude(run)
        self._failures += 1
        if self._failures >= FIRST_FAILURES and not self._any_trained and not self._stopping:
            self.hopeless = True
            self.stop(f"the first {self._failures} trials all failed")

    def _conclude(self, run: TrialRun) -> None:
        run.ended_at = self._clock()
        self._live.pop(run.id, None)
        lost = bool(run.failure or run.diverged)  # Searchers that learn take no value that is not finite.
        result = None if lost else self._result(run, run.resource, self.objective(run), {})
        self.search_alg.on_trial_complete(run.id, result=result, error=lost)
        self._keep(run)
        self._complete(self.completion.ended(math.nan if run.failure else self.objective(run), run.bracket))

    def _complete(self, reason: str) -> None:
        if reason and not self._stopping:
            self.completed = reason
            self.stop(reason)

    def _keep(self, run: TrialRun) -> None:
        if run is not self.probe:
            self._record.trial(run)


def _names(report: Report) -> str:
    return ", ".join(sorted(report.metrics)) or "nothing"
