"""Strategies: configurations to try, and early stopping."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.strategies.asha import (
        AshaStrategy as AshaStrategy,
        AsTheyCome as AsTheyCome,
        OpenHistory as OpenHistory,
    )
    from hpo.strategies.completion_criteria import (
        FIRST_FAILURES as FIRST_FAILURES,
        Completion as Completion,
        TuningJobCompletionCriteriaConfig as TuningJobCompletionCriteriaConfig,
        Verdict as Verdict,
    )
    from hpo.strategies.hyperband import (
        MOST_JOBS as MOST_JOBS,
        Bracket as Bracket,
        Cut as Cut,
        HyperbandStrategy as HyperbandStrategy,
        HyperbandStrategyConfig as HyperbandStrategyConfig,
        Plan as Plan,
        StrategyConfig as StrategyConfig,
        lay_out as lay_out,
        lay_out_cutting as lay_out_cutting,
        run_all as run_all,
    )
    from hpo.strategies.median_rule import (
        median_rule_warnings as median_rule_warnings,
        with_median_rule as with_median_rule,
        without_median_rule as without_median_rule,
    )
    from hpo.strategies.model_strategy import (
        BayesianStrategy as BayesianStrategy,
        by_model as by_model,
        lag_for as lag_for,
    )
    from hpo.strategies.openings import Openings as Openings, by_clock as by_clock, by_number as by_number
    from hpo.strategies.random_strategy import UnknownLengthError as UnknownLengthError, at_random as at_random
    from hpo.strategies.ray_tune import (
        Guard as Guard,
        RayTuneStrategy as RayTuneStrategy,
        check_population as check_population,
        named_code as named_code,
    )
    from hpo.strategies.registry import (
        OWN_STRATEGY as OWN_STRATEGY,
        STRATEGIES as STRATEGIES,
        as_given as as_given,
        as_recorded as as_recorded,
        check_known as check_known,
        check_plan as check_plan,
        check_points as check_points,
        check_repeats as check_repeats,
        check_strategy as check_strategy,
        configurations_for as configurations_for,
        in_place_of as in_place_of,
        name_in_record as name_in_record,
        prepared as prepared,
        strategy_code as strategy_code,
        strategy_from_json as strategy_from_json,
        strategy_of as strategy_of,
    )
    from hpo.strategies.repeats import (
        Means as Means,
        configurations_of as configurations_of,
        mean as mean,
        repeated as repeated,
    )
    from hpo.strategies.scheduler import (
        RESOURCE as RESOURCE,
        SynchronousHyperBandScheduler as SynchronousHyperBandScheduler,
    )
    from hpo.strategies.searchers import (
        History as History,
        ModelSearch as ModelSearch,
        RandomSearch as RandomSearch,
    )
    from hpo.strategies.strategy import (
        Believer as Believer,
        GivesUp as GivesUp,
        Learner as Learner,
        LooksAhead as LooksAhead,
        Prepared as Prepared,
        RungScheduler as RungScheduler,
        Strategy as Strategy,
        Task as Task,
        Waits as Waits,
        rungs_of as rungs_of,
        unsaid as unsaid,
    )
    from hpo.strategies.training_strategy import TrainingStrategy as TrainingStrategy
    from hpo.strategies.warm_start import (
        EARLIER as EARLIER,
        WarmStartConfig as WarmStartConfig,
        WarmStartTypes as WarmStartTypes,
        earlier_best as earlier_best,
        earlier_results as earlier_results,
        observations_in as observations_in,
        observations_of as observations_of,
    )

load_when_used(__name__)
