"""The tuning service: what to try, when to stop, what it cost.

Names are loaded when they are first used, so that a command that trains nothing does not wait for Ray.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.analytics import HyperparameterTuningJobAnalytics
    from hpo.callbacks import Callback
    from hpo.completion import TuningJobCompletionCriteriaConfig
    from hpo.prices import Prices
    from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from hpo.strategies import HyperbandStrategyConfig, StrategyConfig
    from hpo.tuner import HyperparameterTuner

__all__ = [
    "Callback",
    "CategoricalParameter",
    "ContinuousParameter",
    "HyperbandStrategyConfig",
    "HyperparameterTuner",
    "HyperparameterTuningJobAnalytics",
    "IntegerParameter",
    "Prices",
    "StrategyConfig",
    "TuningJobCompletionCriteriaConfig",
]

load_when_used(
    __name__,
    {
        "Callback": "hpo.callbacks",
        "CategoricalParameter": "hpo.ranges",
        "ContinuousParameter": "hpo.ranges",
        "HyperbandStrategyConfig": "hpo.strategies",
        "HyperparameterTuner": "hpo.tuner",
        "HyperparameterTuningJobAnalytics": "hpo.analytics",
        "IntegerParameter": "hpo.ranges",
        "Prices": "hpo.prices",
        "StrategyConfig": "hpo.strategies",
        "TuningJobCompletionCriteriaConfig": "hpo.completion",
    },
)
