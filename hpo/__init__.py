"""The tuning service: what to try, when to stop, what it cost.

Names are loaded when they are first used, so that a command that trains nothing does not wait for Ray.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.cost.prices import Prices
    from hpo.observers.callbacks import Callback
    from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from hpo.sagemaker.analytics import HyperparameterTuningJobAnalytics
    from hpo.strategies.completion_criteria import TuningJobCompletionCriteriaConfig
    from hpo.strategies.registry import HyperbandStrategyConfig, StrategyConfig
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
        "Callback": "hpo.observers.callbacks",
        "CategoricalParameter": "hpo.ranges",
        "ContinuousParameter": "hpo.ranges",
        "HyperbandStrategyConfig": "hpo.strategies.registry",
        "HyperparameterTuner": "hpo.tuner",
        "HyperparameterTuningJobAnalytics": "hpo.sagemaker.analytics",
        "IntegerParameter": "hpo.ranges",
        "Prices": "hpo.cost.prices",
        "StrategyConfig": "hpo.strategies.registry",
        "TuningJobCompletionCriteriaConfig": "hpo.strategies.completion_criteria",
    },
)
