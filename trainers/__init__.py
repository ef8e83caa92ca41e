"""How one configuration is trained by a gang of workers.

Names are loaded when they are first used, so that what trains nothing does not wait for Ray. `ScalingConfig` is Ray
Train's own; imported from here, it brings Ray as Warmband does, kept to this machine.
"""

from typing import TYPE_CHECKING

from trainers.errors import (
    ConfigurationError,
    DataError,
    DivergedError,
    GangError,
    LeaseError,
    ResourcesError,
    TrialError,
    WarmbandError,
)
from trainers.lazy import load_when_used
from trainers.process.openmp import spin_less

if TYPE_CHECKING:
    from ray.train import ScalingConfig

    from trainers.channels import Channel
    from trainers.parameter_server.trainer import ParameterServerTrainer
    from trainers.pytorch.allreduce_trainer import TorchTrainer
    from trainers.pytorch.context import TrainContext
    from trainers.result import TrainingResult
    from trainers.trainer import Trainer
    from trainers.xgboost.trainer import XGBoostTrainer

__all__ = [
    "Channel",
    "ConfigurationError",
    "DataError",
    "DivergedError",
    "GangError",
    "LeaseError",
    "ParameterServerTrainer",
    "ResourcesError",
    "ScalingConfig",
    "TorchTrainer",
    "TrainContext",
    "Trainer",
    "TrainingResult",
    "TrialError",
    "WarmbandError",
    "XGBoostTrainer",
]

TRAINERS = {
    "ParameterServerTrainer": "trainers.parameter_server.trainer",
    "TorchTrainer": "trainers.pytorch.allreduce_trainer",
    "XGBoostTrainer": "trainers.xgboost.trainer",
}
"""The modules of the trainers that a record may name."""

spin_less()
load_when_used(
    __name__,
    {
        "Channel": "trainers.channels",
        "ParameterServerTrainer": TRAINERS["ParameterServerTrainer"],
        "ScalingConfig": "trainers.gangs.scaling",
        "TorchTrainer": TRAINERS["TorchTrainer"],
        "TrainContext": "trainers.pytorch.context",
        "Trainer": "trainers.trainer",
        "TrainingResult": "trainers.result",
        "XGBoostTrainer": TRAINERS["XGBoostTrainer"],
    },
)
