"""Folders of the service's containers in hyperparameters, which become placeholders of this machine's folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpo.serve.aws.errors import invalid

MODEL_DIR = "model_dir"
"""Hyperparameter in which the SDK's TensorFlow estimator names a folder in S3, one for all trainings of a search."""

_ROOT = "/opt/ml"
_FOLDERS = {
    "/opt/ml/model": "{model}",
    "/opt/ml/checkpoints": "{checkpoints}",
    "/opt/ml/output/data": "{output}",
}
_CHANNEL = re.compile(r"/opt/ml/input/data/(?P<name>[^/]+)(?P<rest>(?:/.*)?)")


def with_own_folders(hyperparameters: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Return hyperparameters of a program in which the container's folders are placeholders of a trial's own.

    Args:
        hyperparameters: of the program, as values.
        image: URI of the training's image.

    Raises:
        ServiceError: naming a hyperparameter whose folder has no counterpart.
    """
    found = {name: _localized(name, value) for name, value in hyperparameters.items()}
    in_s3 = str(found.get(MODEL_DIR, "")).startswith("s3://")
    # A container writes to a folder of its training there, so that trainings do not read each other's checkpoints.
    return {**found, MODEL_DIR: "{checkpoints}"} if in_s3 and "tensorflow" in image else found


def _localized(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not (value == _ROOT or value.startswith(f"{_ROOT}/")):
        return value
    for folder, placeholder in _FOLDERS.items():
        if value == folder or value.startswith(f"{folder}/"):
            return placeholder + value.removeprefix(folder)
    if channel := _CHANNEL.fullmatch(value):
        return f"{{data:{channel['name']}}}{channel['rest']}"
    raise invalid(
        f"hyperparameter {name} is {value!r}, a folder of the service's containers that is not here; give one of "
        f"{', '.join(_FOLDERS)}, /opt/ml/input/data/CHANNEL, or read SM_OUTPUT_DIR in the program"
    )
