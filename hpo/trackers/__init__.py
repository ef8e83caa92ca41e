"""Callbacks that log a job to the trackers people have.

They are loaded when they are first used, as every job file is read with their keys; their packages, when a job starts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpo.trackers.mlflow import MLflow
    from hpo.trackers.tensorboard import TensorBoard
    from hpo.trackers.wandb import WeightsAndBiases

else:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(_HOMES[name]), name)
        return found


__all__ = ["MLflow", "TensorBoard", "WeightsAndBiases"]

_HOMES = {
    "MLflow": "hpo.trackers.mlflow",
    "TensorBoard": "hpo.trackers.tensorboard",
    "WeightsAndBiases": "hpo.trackers.wandb",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
