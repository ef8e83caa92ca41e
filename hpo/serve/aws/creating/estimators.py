"""Trainers and channels of a request's training job definitions."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig

from hpo.serve.aws.creating.tables import LENGTH, Tables
from hpo.serve.aws.errors import ServiceError, invalid
from trainers import Channel, Folder, ScriptTrainer, XGBoostTrainer, storage
from trainers.errors import WarmbandError
from trainers.home import home
from trainers.trainer import Trainer

_OWN = "sagemaker_"
"""What hyperparameters begin with that are for the service's containers."""
_LAUNCHERS = {
    "sagemaker_torch_distributed_enabled": "torchrun",
    "sagemaker_pytorch_ddp_enabled": "torchrun",
    "sagemaker_mpi_enabled": "mpirun",
}
MOST_SOURCE = 1 << 30
"""Bytes that the files of a source folder may have together."""

Definition = Mapping[str, Any]


def trainer_of(definition: Definition, hyperparameters: Mapping[str, str], objective: str, tables: Tables) -> Trainer:
    """The trainer that a definition's image and resources stand for.

    Args:
        definition: a TrainingJobDefinition, or the request of a training job.
        hyperparameters: its static ones, as text.
        objective: the metric's name; empty of a training that has none.
        tables: of images and instance types.

    Raises:
        ServiceError: it has an image or a setting that nothing here trains with.
        WarmbandError: a value is wrong.
    """
    algorithm = definition.get("AlgorithmSpecification")
    if algorithm is None:
        raise invalid("AlgorithmSpecification is missing; give TrainingImage and TrainingInputMode")
    image = algorithm.get("TrainingImage") or algorithm.get("AlgorithmName") or ""
    kind = "script" if "sagemaker_program" in hyperparameters else tables.image(image)
    if kind is None:
        raise invalid(
            f"TrainingImage {image!r} is in no table, so that nothing here trains it; name it in the file of "
            "hpo serve --aws-tables"
        )
    scaling = _scaling(definition, tables)
    own = {name: _value(text) for name, text in hyperparameters.items() if not name.startswith(_OWN)}
    if kind == "xgboost":
        return _xgboost(own, scaling, objective)
    return _script(own, hyperparameters, definition, scaling, tables)


def _xgboost(own: dict[str, Any], scaling: ScalingConfig, objective: str) -> XGBoostTrainer:
    metrics = own.get("eval_metric")
    if isinstance(metrics, str):
        own["eval_metric"] = [each.strip() for each in metrics.split(",")]
    if metrics is None and objective:
        own["eval_metric"] = [objective.rpartition(":")[2]]
    if "csv_weights" in own:
        raise invalid("csv_weights is nothing here: a channel's weights are named in a job file; leave it out")
    return XGBoostTrainer(scaling=scaling, hyperparameters=own)


def _script(
    own: dict[str, Any],
    told: Mapping[str, str],
    definition: Definition,
    scaling: ScalingConfig,
    tables: Tables,
) -> ScriptTrainer:
    program, source = (_text(told.get(name, "")) for name in ("sagemaker_program", "sagemaker_submit_directory"))
    if not program or not source:
        raise invalid(
            "HyperParameters name no program: an image that runs scripts takes sagemaker_program and "
            "sagemaker_submit_directory, which the SDK's estimators set from entry_point and source_dir"
        )
    if not tables.allow_code:
        raise ServiceError(
            "AccessDeniedException", "programs of clients do not run here: the server has to have --allow-code", 403
        )
    launcher = next((one for flag, one in _LAUNCHERS.items() if _value(told.get(flag, "false")) is True), "python")
    environment = dict(definition.get("Environment") or {})
    length = environment.pop(LENGTH, None)
    return ScriptTrainer(
        program,
        source_dir=_source(source),
        launcher=launcher,
        scaling=scaling,
        hyperparameters=own,
        metric_definitions=definition["AlgorithmSpecification"].get("MetricDefinitions"),
        environment=environment,
        length=int(length) if length and length.isdecimal() else length,
    )


def _scaling(definition: Definition, tables: Tables) -> ScalingConfig:
    asked = definition.get("HyperParameterTuningResourceConfig") or definition.get("ResourceConfig") or {}
    if groups := asked.get("InstanceGroups") or asked.get("InstanceConfigs"):
        raise invalid(f"InstanceGroups and InstanceConfigs are not here ({len(groups)} given); give one InstanceType")
    name, count = str(asked.get("InstanceType", "ml.m5.large")), int(asked.get("InstanceCount", 1))
    if count < 1:
        raise invalid(f"InstanceCount is {count}; give the number of workers, 1 or more")
    found = tables.instance(name)
    if found is None:
        raise invalid(f"InstanceType {name!r} is in no table; name it in the file of hpo serve --aws-tables")
    resources: dict[str, float] = {"CPU": found.cpus}
    if found.gpus:
        resources["GPU"] = found.gpus
    return ScalingConfig(num_workers=count, use_gpu=bool(found.gpus), resources_per_worker=resources)


def channels_of(definition: Definition, trainer: Trainer) -> dict[str, Any] | None:
    """The channels of a definition; None where it has none.

    Raises:
        ServiceError: a channel is of a kind that nothing here reads.
        WarmbandError: its source is missing or wrong.
    """
    found: dict[str, Any] = {}
    for channel in definition.get("InputDataConfig", ()):
        name, source = channel["ChannelName"], channel["DataSource"].get("S3DataSource")
        if source is None:
            raise invalid(f"channel {name!r} has a FileSystemDataSource, and S3DataSource alone is here")
        if source["S3DataType"] not in ("S3Prefix", "ManifestFile"):
            raise invalid(f"channel {name!r} has S3DataType {source['S3DataType']!r}; give S3Prefix or ManifestFile")
        if channel.get("RecordWrapperType", "None") != "None":
            raise invalid(f"channel {name!r} has RecordWrapperType {channel['RecordWrapperType']!r}; give None")
        uri, dealt = source["S3Uri"], source.get("S3DataDistributionType", "FullyReplicated")
        if isinstance(trainer, ScriptTrainer):
            found[name] = Folder(uri, dealt)
        else:
            kind = channel.get("ContentType", "")
            found[name] = Channel.of(
                uri,
                name=name,
                header=False if re.search("csv", kind) else None,
                # All rows to each worker would count each as often: they are dealt out.
                distribution="ShardedByS3Key" if dealt == "ShardedByS3Key" else None,
            )
    return found or None


def _source(uri: str) -> str:
    """The folder of a source archive, fetched once for each content.

    Raises:
        ServiceError: it is none, or too large.
    """
    try:
        packed = storage.read(uri)
    except WarmbandError as error:
        raise invalid(f"sagemaker_submit_directory {uri!r} cannot be read: {error}") from None
    folder = home() / "serve" / "sources" / hashlib.blake2b(packed, digest_size=16).hexdigest()
    if folder.is_dir():
        return str(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".unpacked-", dir=folder.parent))
    try:
        _unpack(packed, uri, draft)
        with suppress(OSError):  # Another request was faster.
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return str(folder)


def _unpack(packed: bytes, uri: str, folder: Path) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:*") as archive:
            if sum(member.size for member in archive.getmembers()) > MOST_SOURCE:
                raise invalid(f"sagemaker_submit_directory {uri!r} has more than {MOST_SOURCE >> 20} MiB of files")
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise invalid(f"sagemaker_submit_directory {uri!r} is no archive of tar: {error}") from None


def _value(text: str) -> Any:
    """A hyperparameter as its program means it: the SDK writes values as JSON, or as plain text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str | int | float | bool | list) else text


def _text(value: str) -> str:
    return str(_value(value))
