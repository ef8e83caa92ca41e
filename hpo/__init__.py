"""The tuning service: what to try, when to stop, what it cost.

Names are loaded when they are first used, so that a command that trains nothing does not wait for Ray.
"""

from typing import TYPE_CHECKING

from hpo.own_packages import check_own

check_own("trainers")

from trainers.lazy import load_when_used  # noqa: E402  # It may be hidden by a folder of the user's.

if TYPE_CHECKING:
    from hpo.cost import Prices as Prices
    from hpo.notices import Email as Email, Webhook as Webhook
    from hpo.observers import Callback as Callback
    from hpo.ranges import (
        CategoricalParameter as CategoricalParameter,
        ContinuousParameter as ContinuousParameter,
        IntegerParameter as IntegerParameter,
        NormalParameter as NormalParameter,
    )
    from hpo.sagemaker import HyperparameterTuningJobAnalytics as HyperparameterTuningJobAnalytics
    from hpo.strategies import (
        HyperbandStrategyConfig as HyperbandStrategyConfig,
        StrategyConfig as StrategyConfig,
        TuningJobCompletionCriteriaConfig as TuningJobCompletionCriteriaConfig,
        WarmStartConfig as WarmStartConfig,
        WarmStartTypes as WarmStartTypes,
    )
    from hpo.training import TrainingJob as TrainingJob, train as train
    from hpo.tuner import HyperparameterTuner as HyperparameterTuner


load_when_used(__name__)
