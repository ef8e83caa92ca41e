"""The settings of a search, and one trial of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from ray.tune.experiment import Trial

from hpo.cost import Limits
from hpo.forks import Effects, Origin, Phase
from hpo.ranges import ParameterRange
from hpo.ranking import DIVERGED, FAILED, Rank, Ranking, Standing
from hpo.record import UNTUNED as UNTUNED, TrialStatus
from hpo.strategies import TuningJobCompletionCriteriaConfig, unsaid
from trainers import storage
from trainers.checkpoint import UNKNOWN, Manifest
from trainers.gangs import Assignment

PROBE = "probe"
"""Id of the first few units that a gang trains, to measure what they cost there."""


def from_anywhere(hyperparameters: Mapping[str, Any]) -> bool:
    """Every trial goes on exactly from any report where nothing is said."""
    return True


def one_worker(hyperparameters: Mapping[str, Any]) -> int:
    """The size of every gang where nothing is said."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The search for a controller.

    Args:
        name: the job's name; prefix of its trials' ids.
        metric: key of the objective in a report's metrics; empty where there is none.
        mode: "max" or "min".
        max_jobs: trials in all.
        max_parallel_jobs: trials at once.
        max_resource: units of a trial that runs to the end.
        seed: what every random number of the job derives from.
        ranges: a range a tuned hyperparameter.
        storage_path: where checkpoints go, one folder a trial.
        suffix: ending of their names.
        static: the trainer's own hyperparameters, which tuned values override.
        workers: of the gang that a configuration needs, static and tuned values together.
        exact_from: whether a trial of a configuration that was halted between two rungs goes on from there to the same
            model; one of another goes on from its rung.
        length: units that a configuration asks for, where the strategy leaves that to it; None where it does not say.
        best_value: compare trials by their best value so far instead of their last.
        max_attempts: how often a trial may lose its workers, or a checkpoint to go on from, before it is failed.
        untuned: also run `static` alone, as long as a trial, for comparison.
        probes: units of `static` that the first gang trains before any trial, an assignment each; the last of them is
            measured, and those before it warm the gang up.
        limits: what the run may take, in time and money.
        completion: what else ends it before all trials have run.
        points: values for the first trials, by name; what one leaves out is the searcher's.
        repeats: trials of each configuration, which follow each other.
        max_trial_runtime: seconds that gangs may serve a trial.
        max_trial_wait: seconds that gangs may serve it and that it may wait for one after losing another, together.
        patience: seconds that a gang may serve without a report before it is taken for dead.
        stops_only: trials that are not stopped at a rung go on at once, all or most of them, so that a program may wait
            there for that.
        in_order: its decisions follow from the order in which results come, so that each trial keeps its turns.
        fixed_names: hyperparameters that a trial's checkpoint cannot go on with other values of.
        within_ranges: the hyperparameters of a fork, each that is outside its range at the nearest value in it.
        effects: units from which hyperparameters take effect: what trials have in common until then, one of them
            trains. None is the beginning for all, and every trial trains for itself.
    """

    name: str
    metric: str
    mode: str
    max_jobs: int
    max_parallel_jobs: int
    max_resource: int
    seed: int
    storage_path: str
    ranges: Mapping[str, ParameterRange] = field(default_factory=dict)
    static: dict[str, Any] = field(default_factory=dict)
    workers: Callable[[Mapping[str, Any]], int] = one_worker
    exact_from: Callable[[Mapping[str, Any]], bool] = from_anywhere
    length: Callable[[Mapping[str, Any]], int | None] = unsaid
    best_value: bool = False
    suffix: str = ""
    max_attempts: int = 3
    untuned: bool = True
    probes: tuple[int, ...] = ()
    limits: Limits = field(default_factory=Limits)
    completion: TuningJobCompletionCriteriaConfig | None = None
    points: tuple[Mapping[str, Any], ...] = ()
    repeats: int = 1
    max_trial_runtime: float = math.inf
    max_trial_wait: float = math.inf
    patience: float = 600.0
    stops_only: bool = False
    in_order: bool = False
    fixed_names: tuple[str, ...] = ()
    within_ranges: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    effects: Effects | None = None

    @property
    def ranking(self) -> Ranking:
        """Which of its trials is better."""
        return Ranking(maximize=self.mode == "max", by_best=self.best_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A stop of a trial by a person, or by a limit of its time.

    Args:
        by: the person, or the limit's name.
        at: units at which the trial stood then.
        told: whether its scheduler decided of it as any other there, so that it counts among those that it was compared
            with; else it left its rung without being compared.
    """

    by: str
    at: int
    told: bool


@dataclass(slots=True, kw_only=True, eq=False)
class TrialRun:
    """One trial as the controller follows it.

    Args:
        trial: its form in Ray Tune, which schedulers are given.
        number: its place in the order of suggestion, from 0; less for a run beside the search.
        hyperparameters: the tuned values; of the un-tuned run the trainer's own.
        seed: what its training's random numbers derive from.
        limit: units at which it ends whatever is decided of it.
        workers: of the gang that it needs.
        given: what gave its values, or some of them; see `TrialRow`.
        believed: what the searcher's model expected of it; see `TrialRow`.
        metrics: those of the report that it is compared by, the last or the best.
        checkpoint: its latest; None where it has none yet, or it was dropped.
        manifest: the files of its latest checkpoint, dropped or not.
        logs: where the output of the worker that failed it is, as "address:path".
        details: what happened beside the metrics, over all its assignments.
        turns: when it was chosen and told, if the order makes a difference; see `hpo.search.recall.Turns`.
        cut: a stop ended it on its way, so that it goes on if the job does.
        judged: no completion criterion has still to look at it.
        ahead: it was suggested behind the trial at which the job was complete, and does not count.
        back: where it goes on from then, if that is not where it stands; see `goes_on_from`.
        at_rung: where it stood at its last rung, if it was halted since, or trains its rungs again; see
            `Comparison.standing`.
        again: which of its attempts began from nothing, since its checkpoint was spoilt. Its new ones have other names:
            the old ones may still be removed, or written by a gang that was lost.
        diverged: why its numbers are not finite any more; it then has no value, and that is no failure.
        diverged_from: the units of its last rung then; 0 where it had reached none.
        stops: its scheduler, a person, a limit or the end of its job stopped it while it trained, so that it ends at
            its next report.
        stopped: a person's stop, or a limit's, that it ended by; None where none did.
        stop_known: likewise in the run before, so that it ends there again.
        origin: where it began, if that was another trial's checkpoint.
        past: how its ancestors trained what its model had there.
        common: a trial before it with the same beginning, and how far it goes; None where none was found.
        shared: units of it that another trial trained.
        lends: its checkpoints at units where others may part from it, by unit, in the form of the record.
    """

    trial: Trial
    number: int
    hyperparameters: dict[str, Any]
    seed: int
    limit: int
    workers: int = 1
    given: str = ""
    believed: Mapping[str, Any] = field(default_factory=dict)
    bracket: int | None = None
    resource: int = 0
    checkpoint: str | None = None
    manifest: Manifest = UNKNOWN
    metrics: dict[str, float] = field(default_factory=dict)
    value: float = math.nan
    best_value: float = math.nan
    best_resource: int = 0
    attempts: int = 0
    again: int = 0
    failure: str = ""
    traceback: str = ""
    logs: str = ""
    diverged: str = ""
    diverged_from: int = 0
    cut: bool = False
    judged: bool = True
    ahead: bool = False
    back: dict[str, Any] = field(default_factory=dict)
    at_rung: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    turns: dict[str, Any] = field(default_factory=dict)
    stops: bool = False
    stopped: Stopped | None = None
    stop_known: Stopped | None = None
    origin: Origin | None = None
    past: tuple[Phase, ...] = ()
    common: Origin | None = None
    shared: int = 0
    lends: dict[str, Any] = field(default_factory=dict)
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def tuned(self) -> bool:
        """Whether it is one of the search's trials, not a run beside them."""
        return self.number >= 0

    @property
    def id(self) -> str:
        """The trial's id."""
        return str(self.trial.trial_id)

    @property
    def suggested(self) -> bool:
        """Whether the searcher suggested it; not so a fork that took another's place."""
        return self.origin is None or not self.origin.replaces

    @property
    def begins_at(self) -> int:
        """The units behind which its own reports begin."""
        return 0 if self.origin is None else self.origin.resource

    @property
    def phase(self) -> Phase:
        """How it trains on from where it stands: as an ancestor did, where it trains again what that one trained."""
        own = Phase(until=self.limit, config=self.trial.config, seed=self.seed)
        return next((phase for phase in self.past if self.resource < phase.until), own)


def new_run(search: Search, number: int, trial_id: str, hyperparameters: Mapping[str, Any]) -> TrialRun:
    """A trial, or a run beside them, that nothing has been done for yet.

    Args:
        search: what it is part of.
        number: its place in the order of suggestion; less than 0 for a run beside the search.
        trial_id: its id.
        hyperparameters: the tuned values.
    """
    config = {**search.static, **hyperparameters}
    length = search.length(config)
    return TrialRun(
        trial=Trial("warmband", trial_id=trial_id, config=config, stub=True),
        number=number,
        hyperparameters=dict(hyperparameters),
        seed=derive_seed(search.seed, trial_id if number < 0 else number),
        limit=search.max_resource if length is None else min(search.max_resource, length),
        workers=search.workers(config),
    )


def rank_of(ranking: Ranking, run: TrialRun) -> Rank:
    """Where a trial stands among the others, where each configuration is trained once."""
    return ranking.rank_standing(standing_of(ranking, run))


def standing_of(ranking: Ranking, run: TrialRun) -> Standing:
    """What a trial is ranked by."""
    value, resource = ranking.counts((run.value, run.resource), (run.best_value, run.best_resource))
    lost = FAILED if run.failure else DIVERGED if run.diverged else 0
    return Standing(value=value, resource=resource, number=run.number, lost=lost, partial=run.stopped is not None)


def status_of(run: TrialRun) -> TrialStatus:
    """A trial's status in the record: Completed if it ran to its end, Stopped if it was ended before."""
    if run.diverged:
        return "Diverged"
    if run.ahead and run.trial.status == Trial.TERMINATED:
        return "Stopped"
    if run.trial.status == Trial.ERROR:
        return "Failed"
    if run.trial.status == Trial.TERMINATED:
        return "Completed" if run.resource >= run.limit else "Stopped"
    pending: TrialStatus = "Pending" if run.resource == 0 else "Paused"
    return "Running" if run.trial.status == Trial.RUNNING else pending


def put_back(run: TrialRun) -> int:
    """Puts a trial back to its last rung, from where it was halted, or where it trains its rungs again.

    Returns:
        The units that it has less by that, if it is one of the search's.
    """
    rung = run.at_rung.get("resource", run.resource)
    lost: int = run.tuned * (run.resource - rung)
    if rung > run.resource:
        run.checkpoint, run.manifest = None, UNKNOWN
    for name, value in run.at_rung.items():
        setattr(run, name, value)
    return lost


def goes_on_from(run: TrialRun) -> dict[str, Any]:
    """Where a trial stands, for the details of one that was halted and will have to go on from here."""
    return {
        "resource": run.resource,
        "checkpoint": run.checkpoint or "",
        "checkpoint_bytes": run.manifest.size,
        "files": run.manifest.to_json(),
        "details": run.details,
    }


def next_assignment(search: Search, run: TrialRun, stop: int) -> Assignment:
    """The assignment that trains a trial from where it stands to so many units."""
    ending = f".{run.again}{search.suffix}" if run.again else search.suffix
    phase = run.phase
    return Assignment(
        trial_id=run.id,
        hyperparameters=phase.config,
        seed=phase.seed,
        start=run.resource,
        stop=stop,
        checkpoint=run.checkpoint,
        manifest=run.manifest,
        save_to=storage.join(search.storage_path, run.id, f"{stop:06d}{ending}"),
        objective=search.metric,
        mode=search.mode if search.metric else "",
        by_best=search.best_value,
        limit=run.limit,
        value=run.value,
        goes_on=search.stops_only and run.tuned and stop < run.limit,
    )


def derive_seed(seed: int, part: int | str) -> int:
    """A 31-bit seed for one part of a job."""
    digest = hashlib.blake2b(f"{seed}/{part}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1
