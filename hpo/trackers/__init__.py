"""Trackers: callbacks that log a job to TensorBoard, MLflow or Weights & Biases.

They are loaded when they are first used, as every job file is read with their keys; their packages, when a job starts.
"""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.trackers.mlflow import MLflow as MLflow
    from hpo.trackers.registry import Lineage as Lineage, Registered as Registered, register as register
    from hpo.trackers.tensorboard import TensorBoard as TensorBoard
    from hpo.trackers.tracker import Tracker as Tracker
    from hpo.trackers.wandb import WeightsAndBiases as WeightsAndBiases

load_when_used(__name__)
