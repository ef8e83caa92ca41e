"""The tuning service: what to try, when to stop, what it cost.

Names are loaded when they are first used, so that a command that trains nothing does not wait for Ray.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpo.analytics import HyperparameterTuningJobAnalytics
    from hpo.callbacks import Callback
    from hpo.completion import TuningJobCompletionCriteriaConfig
    from hpo.prices import Prices
    from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from hpo.strategies import HyperbandStrategyConfig, StrategyConfig
    from hpo.tuner import HyperparameterTuner

else:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_HOMES[name]), name)
        return found


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

_HOMES = {
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
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
