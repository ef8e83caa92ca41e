"""Comparison of simulated searches: strategies, numbers of gangs and budgets, over several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hpo.cost import Tariff
from hpo.ranges import ParameterRange
from hpo.ranking import mean_error
from hpo.search import Search
from hpo.simulation.curves import Curves
from hpo.simulation.replay import Replayed, simulate
from hpo.strategies import Strategy, check_plan, check_repeats, check_strategy, repeated, with_median_rule

if TYPE_CHECKING:
    from hpo.suggestions import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Simulated searches that differ in their seed alone.

    Args:
        strategy: its name.
        gangs: that trained at once.
        max_jobs: trials in all.
        most_units: that these trials would train, each run to the end.
        runs: one a seed.
        regrets: of each, at its end; None where the table's best is not known.
    """

    strategy: str
    gangs: int
    max_jobs: int
    most_units: int
    runs: Sequence[Replayed]
    regrets: Sequence[float] | None

    def mean(self, figure: Callable[[Replayed], float]) -> float:
        """The mean of a figure over the seeds."""
        return statistics.fmean(map(figure, self.runs))

    @property
    def regret(self) -> tuple[float, float] | None:
        """The mean regret and its standard error, which is NaN of one seed; None where there is no regret."""
        return None if self.regrets is None else mean_and_error(self.regrets)

    def to_json(self, tariff: Tariff | None) -> dict[str, Any]:
        """The means by name, with the regret of each seed."""
        bill = self.mean(lambda run: run.worker_seconds)
        regret = self.regret
        return {
            "strategy": self.strategy,
            "gangs": self.gangs,
            "max_jobs": self.max_jobs,
            "seeds": len(self.runs),
            "regret": regret and regret[0],
            "regret_error": regret and regret[1],
            "regrets": self.regrets,
            "best": self.mean(_best),
            "units": self.mean(lambda run: run.units),
            "most_units": self.most_units,
            "wall_seconds": self.mean(lambda run: run.wall_seconds),
            "worker_seconds": bill,
            "cost": tariff and tariff.of(bill),
        }


def compare(
    curves: Curves,
    search: Search,
    ranges: Mapping[str, ParameterRange],
    *,
    strategies: Mapping[str, Strategy],
    units: int,
    gangs: Sequence[int],
    max_jobs: Sequence[int],
    seeds: Sequence[int],
    early_stopping_type: str = "Off",
    earlier: Sequence[Observation] = (),
) -> list[Row]:
    """Runs every strategy with every number of gangs and every budget.

    Args:
        curves: of the task.
        search: the job's; its seed, gangs and trials are replaced.
        ranges: of the tuned hyperparameters.
        strategies: by name.
        units: of a trial that runs to the end, for strategies that are not told otherwise.
        gangs: how many train at once.
        max_jobs: trials in all.
        seeds: of each.
        early_stopping_type: "Auto" has the median rule stop trials, of every strategy.
        earlier: results of earlier jobs, for strategies that learn.

    Raises:
        ConfigurationError: a strategy cannot search so, or trials would train longer than the curves.
    """
    for strategy in strategies.values():  # Before any of them searches, which may take minutes.
        check_strategy(strategy, None, early_stopping_type)
        for jobs in max_jobs:
            check_repeats(strategy, search.repeats, jobs)
    rows = []
    for name, strategy in strategies.items():
        for jobs in max_jobs:
            configurations = jobs // search.repeats
            plan = check_plan(strategy.plan(ranges, configurations, units), configurations, name)
            plan = with_median_rule(plan) if early_stopping_type == "Auto" else plan
            plan = repeated(plan, search.repeats)
            for count in gangs:
                runs = [
                    simulate(
                        curves,
                        replace(search, max_parallel_jobs=count, seed=seed),
                        strategy,
                        plan,
                        ranges,
                        earlier=earlier,
                    )
                    for seed in seeds
                ]
                regrets = [curves.regret(_best(run), search.ranking) for run in runs]
                known = [regret for regret in regrets if regret is not None]
                rows.append(
                    Row(
                        strategy=name,
                        gangs=count,
                        max_jobs=jobs,
                        most_units=plan.full_resource,
                        runs=runs,
                        regrets=known if len(known) == len(runs) else None,
                    )
                )
    return rows


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """A mean and its standard error; NaN of one value."""
    error = mean_error(values)
    return statistics.fmean(values), math.nan if error is None else error


def _best(run: Replayed) -> float:
    """The best value that it saw."""
    return run.best_after(run.units)
