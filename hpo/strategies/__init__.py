"""Strategies: configurations to try, and early stopping."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.strategies.completion_criteria import (
        Completion as Completion,
        TuningJobCompletionCriteriaConfig as TuningJobCompletionCriteriaConfig,
        Verdict as Verdict,
    )
    from hpo.strategies.hyperband import (
        MOST_JOBS as MOST_JOBS,
        Bracket as Bracket,
        Cut as Cut,
        Plan as Plan,
        lay_out as lay_out,
        run_all as run_all,
    )
    from hpo.strategies.random_search import RandomSearch as RandomSearch
    from hpo.strategies.registry import (
        HyperbandStrategyConfig as HyperbandStrategyConfig,
        Strategy as Strategy,
        StrategyConfig as StrategyConfig,
        check_strategy as check_strategy,
        grown as grown,
        make_strategy as make_strategy,
        plan_for as plan_for,
        stops_nothing as stops_nothing,
    )
    from hpo.strategies.scheduler import (
        RESOURCE as RESOURCE,
        SynchronousHyperBandScheduler as SynchronousHyperBandScheduler,
    )

load_when_used(__name__)
