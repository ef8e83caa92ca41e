"""Distributed XGBoost."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.xgboost.booster import (
        booster_parameters as booster_parameters,
        preparation_of as preparation_of,
    )
    from trainers.xgboost.checks import check_parameters as check_parameters
    from trainers.xgboost.matrices import codes_known as codes_known
    from trainers.xgboost.parameters import ROUNDS as ROUNDS, metric_names as metric_names
    from trainers.xgboost.program import XGBoostProgram as XGBoostProgram
    from trainers.xgboost.rounds import Evaluation as Evaluation, Share as Share
    from trainers.xgboost.trainer import XGBoostTrainer as XGBoostTrainer

load_when_used(__name__)
