"""How one configuration is trained by a gang of workers."""

from trainers.channels import Channel
from trainers.errors import ConfigurationError, DataError, GangError, ResourcesError, TrialError, WarmbandError
from trainers.trainer import Trainer, TrainingResult
from trainers.xgboost_allreduce import XGBoostTrainer

__all__ = [
    "Channel",
    "ConfigurationError",
    "DataError",
    "GangError",
    "ResourcesError",
    "Trainer",
    "TrainingResult",
    "TrialError",
    "WarmbandError",
    "XGBoostTrainer",
]
