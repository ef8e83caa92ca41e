"""The strategy RayTune: any searcher and any scheduler of Ray Tune's, or a sampler of Optuna's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpo.ranges import ParameterRange, search_space
from hpo.strategies.hyperband import Plan, run_all
from hpo.strategies.random_strategy import at_random, length
from hpo.strategies.ray_tune.part import Part
from hpo.strategies.strategy import Prepared, Strategy, Task
from trainers.checking import is_whole
from trainers.errors import ConfigurationError, in_words

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

    from hpo.strategies.ray_tune.guard import Guard

_TIMING = (
    "searcher and scheduler take results as they come: with max_parallel_jobs above 1, another run of the same seed "
    "may try and stop others"
)

_FAULTS = {
    "HyperBandScheduler": "it fills the bracket that stops no trial first, and where the last trial to come to a rung "
    "fails after its bracket was halved, the others wait for ever, which ends the job; give strategy='Hyperband' for "
    "neither",
}
"""What users get with a scheduler of Ray Tune's, by its name (ray 2.60.0)."""

_POPULATIONS = ("PopulationBasedTraining", "PB2")
"""Schedulers that ask a trial to go on from another's checkpoint."""

_STOP_ONLY = ("FIFOScheduler", "AsyncHyperBandScheduler", "ASHAScheduler", "MedianStoppingRule")
"""Schedulers that stop trials and pause none, but for the median rule with `hard_stop=False`."""


_ENDING = ("AsyncHyperBandScheduler", "ASHAScheduler", "HyperBandScheduler", "HyperBandForBOHB")
"""Schedulers that end every trial after `max_t` units."""


class RayTuneStrategy(Strategy):
    """Trials that a searcher suggests and a scheduler stops; one trains as long as the trainer's hyperparameters say.

    Args:
        searcher: as `Part.of` takes it; None is random search.
        scheduler: likewise; None trains every trial to its end.

    Raises:
        ConfigurationError: both are None, or one is none of what it can be.
    """

    def __init__(self, *, searcher: Any = None, scheduler: Any = None) -> None:
        if searcher is None and scheduler is None:
            raise ConfigurationError("searcher and scheduler are both None; give one, or strategy 'Random'")
        self._searcher = None if searcher is None else Part.of("searcher", searcher)
        self._scheduler = None if scheduler is None else Part.of("scheduler", scheduler)

    @property
    def options(self) -> dict[str, Any]:
        """See `Strategy.options`."""
        return {part.role: part.to_json() for part in self._parts}

    @property
    def stops(self) -> bool:
        """See `Strategy.stops`."""
        return self._scheduler is not None

    @property
    def stops_only(self) -> bool:
        """See `Strategy.stops_only`: of Ray's own schedulers alone it is known."""
        part = self._scheduler
        if part is None or part.name not in _STOP_ONLY or not part.place.startswith("ray.tune.schedulers"):
            return False
        return bool(
            (part.arguments or {}).get("hard_stop", True)
            if part.thing is None
            else getattr(part.thing, "_hard_stop", True)
        )

    @property
    def depends_on_timing(self) -> bool:
        """See `Strategy.depends_on_timing`."""
        part = self._scheduler
        if part is None or part.name not in _POPULATIONS:
            return True
        return not ((part.arguments or {}).get("synch", True) if part.thing is None else part.thing._synch)

    @property
    def bound(self) -> str:
        """See `Strategy.bound`."""
        return next((part.bound for part in self._parts if part.bound), "")

    @property
    def refuses_repeats(self) -> str:
        """See `Strategy.refuses_repeats`: what is Ray Tune's knows trials alone."""
        return "searchers and schedulers of Ray Tune's take trials one by one; leave repeats out, or give a strategy"

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`; what its scheduler will stop is not known before."""
        units = length(self._most if units is None else units, *self._lengths)
        if units == 1 and self._scheduler is not None:
            raise ConfigurationError(
                f"scheduler {self._scheduler.name} stops trials at their reports, and a trial gives one, at its end; "
                "leave scheduler out, or let a trial train more than one"
            )
        return run_all(max_jobs, units)

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`."""
        return run_all(max_jobs, plan.max_resource)

    def warnings(self, plan: Plan) -> Sequence[str]:
        """See `Strategy.warnings`."""
        bound = [f"{each.bound}: this job cannot be resumed otherwise" for each in self._parts if each.bound]
        faults = [f"scheduler {part.name}: {_FAULTS[part.name]}" for part in self._parts if part.name in _FAULTS]
        return [*([_TIMING] if self.depends_on_timing else []), *bound, *faults]

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`.

        Raises:
            ConfigurationError: a part cannot be made, or counts, compares or stops by something else than the job.
        """
        # Imported here: a job file is checked without waiting for Ray.
        from ray.tune.schedulers import PopulationBasedTraining

        from hpo.strategies.ray_tune.guard import Guard
        from hpo.strategies.ray_tune.populations import check_searcher
        from hpo.strategies.ray_tune.searcher import GuardedSearcher

        guard = Guard(task.seed % 2**32)
        made = at_random(task)
        inner = made.searcher if self._searcher is None else _searcher(self._searcher, task)
        scheduler = made.scheduler if self._scheduler is None else _scheduler(self._scheduler, task, guard)
        if isinstance(scheduler, PopulationBasedTraining):
            check_searcher(inner, task)
        searcher = GuardedSearcher(
            inner,
            ranges=task.ranges,
            metric=task.metric,
            mode=task.mode,
            guard=guard,
            name=self._searcher.name if self._searcher else "",
        )
        return Prepared(searcher=searcher, scheduler=scheduler, plan=task.plan)

    @property
    def _most(self) -> int | None:
        """The units after which its scheduler ends every trial, where it was told them."""
        part = self._scheduler
        if part is None or not self._lengths:
            return None
        if part.thing is not None:
            from hpo.strategies.ray_tune import known

            return known.longest(part.thing)
        most = (part.arguments or {}).get("max_t")
        return most if is_whole(most, 1) else None

    @property
    def _lengths(self) -> tuple[str, ...]:
        """Its settings that may say how long a trial trains, in words."""
        part = self._scheduler
        ends = part is not None and part.name in _ENDING and part.place.startswith("ray.tune.schedulers")
        return ("max_t of the scheduler",) if ends else ()

    @property
    def _parts(self) -> list[Part]:
        return [part for part in (self._searcher, self._scheduler) if part is not None]


def _searcher(part: Part, task: Task) -> Searcher:
    """A searcher that knows the space and the objective."""
    from optuna.samplers import BaseSampler
    from ray.tune.search import Searcher
    from ray.tune.search.optuna import OptunaSearch

    from hpo.strategies.ray_tune.sampler_search import SamplerSearch, quiet

    made = part.made((Searcher, BaseSampler), task.seed, {})
    space = search_space(task.ranges)
    try:
        if isinstance(made, BaseSampler):
            return SamplerSearch(
                made,
                OptunaSearch.convert_search_space(space),
                metric=task.metric,
                mode=task.mode,
                longest=task.plan.max_resource,
                length=task.length,
            )
        searcher: Searcher = made
        _check_objective(part, task, searcher.metric, searcher.mode)
        with quiet():
            searcher.set_search_properties(task.metric, task.mode, space)
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{part.role} {part.name} does not take the ranges {', '.join(task.ranges)}: {in_words(error)}"
        ) from error
    return searcher


def _scheduler(part: Part, task: Task, guard: Guard) -> TrialScheduler:
    """A scheduler that counts units and compares by the objective."""
    from ray.tune.schedulers import PopulationBasedTraining, TrialScheduler

    from hpo.strategies.ray_tune import known, populations
    from hpo.strategies.ray_tune.scheduler import GuardedScheduler
    from hpo.strategies.scheduler import RESOURCE

    usual = populations.defaults(task.ranges, task.fixed_names, task.plan.max_resource)
    if part.arguments is not None:
        populations.check_arguments(part.kind((TrialScheduler,)), part.arguments, usual)
    made: TrialScheduler = part.made((TrialScheduler,), task.seed, {**usual, "time_attr": RESOURCE})
    known.check_served(made)
    populations.check_population(made, task.fixed_names)
    metric, mode, counts = made.metric, known.mode(made), known.counts(made)
    _check_objective(part, task, metric, mode)
    if counts not in (None, RESOURCE, "training_iteration"):
        raise ConfigurationError(
            f"scheduler {part.name} counts {counts!r}, and a job counts reports, one a unit; give "
            "time_attr='training_iteration'"
        )
    if isinstance(made, PopulationBasedTraining):
        populations.check_task(made, task)
        return made  # The search itself shows it members in the place of trials, and forks those.
    made.set_search_properties(None if metric else task.metric, None if mode else task.mode)
    return GuardedScheduler(made, milestones=known.milestones(made, task.plan.max_resource), guard=guard)


def _check_objective(part: Part, task: Task, metric: Any, mode: Any) -> None:
    """Refuses an objective of its own that is not the job's."""
    if metric not in (None, task.metric):
        raise ConfigurationError(
            f"{part.role} {part.name} has the metric {metric!r}, and objective_metric_name is {task.metric!r}; leave "
            "metric out"
        )
    if mode not in (None, task.mode):
        raise ConfigurationError(
            f"{part.role} {part.name} has the mode {mode!r}, and objective_type means {task.mode!r}; leave mode out"
        )
