"""Training through xgboost_ray, the second backend of `XGBoostTrainer`."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.xgboost.ray_backend.gangs import XGBoostRayGangs as XGBoostRayGangs
    from trainers.xgboost.ray_backend.options import check_backend as check_backend

load_when_used(__name__)
