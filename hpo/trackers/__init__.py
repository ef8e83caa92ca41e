"""Callbacks that log a job to the trackers people have; a tracker's own package is imported when a job starts."""

from hpo.trackers.mlflow import MLflow
from hpo.trackers.tensorboard import TensorBoard
from hpo.trackers.wandb import WeightsAndBiases

__all__ = ["MLflow", "TensorBoard", "WeightsAndBiases"]
