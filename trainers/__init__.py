"""How one configuration is trained by a gang of workers.

Names are loaded when they are first used, so that what trains nothing does not wait for Ray. `ScalingConfig` is Ray
Train's own; imported from here, it brings Ray as Warmband does, kept to this machine.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used
from trainers.process import spin_less

if TYPE_CHECKING:
    from ray.train import ScalingConfig as ScalingConfig

    from trainers.channels import Channel as Channel, Examples as Examples, Folder as Folder
    from trainers.errors import (
        ConfigurationError as ConfigurationError,
        DataError as DataError,
        DivergedError as DivergedError,
        GangError as GangError,
        LeaseError as LeaseError,
        NoJobError as NoJobError,
        RecordLostError as RecordLostError,
        ResourcesError as ResourcesError,
        TrialError as TrialError,
        WarmbandError as WarmbandError,
    )
    from trainers.parameter_server import ParameterServerTrainer as ParameterServerTrainer
    from trainers.pytorch import (
        Layout as Layout,
        ModelPlan as ModelPlan,
        TorchTrainer as TorchTrainer,
        TrainContext as TrainContext,
    )
    from trainers.ray_train import RayTrainTrainer as RayTrainTrainer
    from trainers.result import TrainingResult as TrainingResult
    from trainers.script import ScriptTrainer as ScriptTrainer
    from trainers.several import SeveralTrainers as SeveralTrainers
    from trainers.trainer import Trainer as Trainer
    from trainers.xgboost import XGBoostTrainer as XGBoostTrainer


TRAINERS = {
    "ParameterServerTrainer": "trainers.parameter_server.trainer",
    "RayTrainTrainer": "trainers.ray_train.trainer",
    "ScriptTrainer": "trainers.script.trainer",
    "SeveralTrainers": "trainers.several.trainer",
    "TorchTrainer": "trainers.pytorch.allreduce_trainer",
    "XGBoostTrainer": "trainers.xgboost.trainer",
}
"""The modules of the trainers that a record may name."""

spin_less()
load_when_used(__name__)
