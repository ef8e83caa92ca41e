"""The tuning service: what to try, when to stop, what it cost."""

from hpo.analytics import HyperparameterTuningJobAnalytics
from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.strategies import HyperbandStrategyConfig, StrategyConfig
from hpo.tuner import HyperparameterTuner

__all__ = [
    "CategoricalParameter",
    "ContinuousParameter",
    "HyperbandStrategyConfig",
    "HyperparameterTuner",
    "HyperparameterTuningJobAnalytics",
    "IntegerParameter",
    "StrategyConfig",
]
