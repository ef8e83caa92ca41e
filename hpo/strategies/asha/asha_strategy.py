"""The strategy ASHA: its brackets, its searcher with a model or without, and what depends on timing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hpo.ranges import ParameterRange, search_space
from hpo.strategies.asha.promotions import grown, lay_out_asynchronous
from hpo.strategies.hyperband import HyperbandStrategy, Plan
from hpo.strategies.random_strategy import MAX_RESOURCE, length
from hpo.strategies.strategy import Prepared, Task

TIMING = (
    "ASHA promotes trials by what has come so far: with several trials at once, the same seed may find others the next "
    "time; a job that is resumed keeps what it decided. For one answer a seed, give the strategy Hyperband"
)


class AshaStrategy(HyperbandStrategy):
    """ASHA over configurations that a model suggests, or random ones; it takes what Hyperband takes.

    Its model reads whatever has come when a suggestion is computed, and waits for nothing.

    Args:
        suggestions: see `HyperbandStrategyConfig`.
        **options: see `HyperbandStrategy`.
    """

    name: ClassVar[str] = "ASHA"
    depends_on_timing = True

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """See `Strategy.plan`."""
        config = self._config or self._from_trainer(length(units, MAX_RESOURCE))
        return lay_out_asynchronous(max_jobs, config.min_resource, config.max_resource, config.reduction_factor)

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """See `Strategy.grown`."""
        return grown(plan, max_jobs)

    def warnings(self, plan: Plan) -> list[str]:
        """See `Strategy.warnings`; and that the answer depends on timing."""
        return [TIMING, *super().warnings(plan)]

    def prepare(self, task: Task) -> Prepared:
        """See `Strategy.prepare`."""
        # Imported here: a job file is checked without waiting for Ray.
        from hpo.strategies.asha.asha_scheduler import AshaScheduler
        from hpo.strategies.asha.open_history import OpenHistory
        from hpo.strategies.searchers import ModelSearch, RandomSearch

        metric, mode, seed = task.metric, task.mode, task.seed
        scheduler = AshaScheduler(task.plan, metric=metric, mode=mode)
        if not self.learns:
            searcher = RandomSearch(search_space(task.ranges), metric=metric, mode=mode, seed=seed)
            return Prepared(searcher=searcher, scheduler=scheduler, plan=task.plan)
        model = ModelSearch(
            task.ranges,
            task.plan,
            metric=metric,
            mode=mode,
            seed=seed,
            earlier=task.earlier,
            ahead=not task.in_process and task.parallel > 1,
            history=OpenHistory(task.plan),
        )
        return Prepared(searcher=model, scheduler=scheduler, plan=task.plan)
