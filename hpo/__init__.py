"""The tuning service: what to try, when to stop, what it cost."""

from hpo.analytics import HyperparameterTuningJobAnalytics
from hpo.callbacks import Callback
from hpo.completion import TuningJobCompletionCriteriaConfig
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
    "StrategyConfig",
    "TuningJobCompletionCriteriaConfig",
]
