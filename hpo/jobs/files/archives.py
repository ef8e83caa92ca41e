"""Archives of models: a `model.tar.gz` for each training that has ended, where and as SageMaker's jobs leave theirs."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import Any

from hpo.record import training_job_name
from hpo.search import TrialRun
from trainers import ScriptTrainer, XGBoostTrainer, storage
from trainers.checkpoint import looked_up
from trainers.errors import ConfigurationError
from trainers.script import gzipped_tar
from trainers.trainer import Trainer

ARCHIVES = "archives"
"""Of a job's `spec`: the folder or URI below which the models of its trainings go."""

FILE = "model.tar.gz"
_XGBOOST = "xgboost-model"
"""The file in which the service's XGBoost keeps its model."""


def archive_of(spec: Mapping[str, Any], training: str) -> str:
    """Where the archive of a training's model is, once it has ended; empty where its job makes none.

    Args:
        spec: of its job.
        training: the name of the training job, or of a trial.
    """
    folder = spec.get(ARCHIVES)
    return storage.join(folder, training, "output", FILE) if folder else ""


class Archives:
    """Writes the archives of a job.

    Args:
        spec: of the job.
        estimator: its trainer.
        folder: of its checkpoints, with a folder a trial.
        name: of the job.
        training: it is a single training; else each trial is one.
    """

    def __init__(
        self, spec: Mapping[str, Any], estimator: Trainer, folder: str, *, name: str, training: bool = False
    ) -> None:
        self._spec, self._estimator, self._folder = spec, estimator, folder
        self._name, self._training = name, training

    def __bool__(self) -> bool:
        return bool(self._spec.get(ARCHIVES))

    def write(self, run: TrialRun) -> None:
        """Writes the model of a trial that has ended, whole or not at all; one that has none leaves no archive.

        Raises:
            StorageError: it cannot be read or written now.
            DataError: its checkpoint is cut short, changed or missing.
        """
        checkpoint, manifest = run.checkpoint, run.manifest
        if not checkpoint:  # Its place is another's by now; a run that broke off may have left it there.
            checkpoint = self._left(run)
            if not checkpoint:
                return
        if not manifest.files:
            manifest = looked_up(checkpoint)
        trainer, _ = self._estimator.chosen(run.trial.config)
        data = packed(trainer.trained(checkpoint, manifest=manifest))
        name = self._name if self._training else training_job_name(self._name, run.id)
        storage.write(archive_of(self._spec, name), data)

    def _left(self, run: TrialRun) -> str:
        folder = storage.join(self._folder, run.id)
        start = f"{run.resource:06d}"
        name = next((name for name in sorted(storage.names(folder)) if name.partition(".")[0] == start), "")
        return storage.join(folder, name) if name and run.resource else ""


def packed(trainer: Trainer) -> bytes:
    """A trained model as the service's containers pack it.

    Args:
        trainer: has the model.

    Raises:
        ConfigurationError: it is of no kind that the service's containers have.
        StorageError: it cannot be read now.
        DataError: it is cut short, changed or missing.
    """
    if isinstance(trainer, ScriptTrainer):
        return trainer.packed_model()
    if not isinstance(trainer, XGBoostTrainer):
        raise ConfigurationError(f"{type(trainer).__name__} makes no {FILE}; leave {ARCHIVES} out")
    buffer, raw = io.BytesIO(), bytes(trainer.model().save_raw("ubj"))
    with gzipped_tar(buffer) as archive:
        entry = tarfile.TarInfo(_XGBOOST)
        entry.size, entry.mode = len(raw), 0o644
        archive.addfile(entry, io.BytesIO(raw))
    return buffer.getvalue()
