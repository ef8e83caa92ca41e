"""Trainers and channels of a request's training job definitions."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray.train import ScalingConfig

from hpo.serve.aws.creating.container_paths import with_own_folders
from hpo.serve.aws.creating.distributions import Distribution, distribution_of
from hpo.serve.aws.creating.settings import (
    LOG_LEVEL,
    MPI_OPTIONS,
    OBJECTIVE,
    PREFIX,
    PROGRAM,
    REGION,
    SOURCE,
    check_hyperparameters,
)
from hpo.serve.aws.creating.tables import LENGTH, Instance, Tables
from hpo.serve.aws.errors import ServiceError, invalid
from trainers import Channel, Folder, ScriptTrainer, XGBoostTrainer, storage
from trainers.archives import FlawedArchiveError, archive_errors, extract
from trainers.deletion import temporary_folder
from trainers.errors import ConfigurationError, WarmbandError
from trainers.home import home
from trainers.trainer import Trainer

_USUAL_LOG_LEVEL = 20  # INFO, as `SM_LOG_LEVEL` is anyhow.
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
    kind = "script" if PROGRAM in hyperparameters else tables.image(image)
    if kind is None:
        raise invalid(
            f"TrainingImage {image!r} is in no table, so that nothing here trains it; name it in the file of "
            "hpo serve --aws-tables"
        )
    given = {name: _value(text) for name, text in hyperparameters.items() if name != OBJECTIVE}
    check_hyperparameters(given)
    if kind == "xgboost":
        if (asked := distribution_of(given, "", instances=2, gpus=0)) != Distribution():
            raise invalid(
                f"HyperParameters ask for launcher {asked.launcher!r}, and image {image!r} runs no program: its "
                "workers add up over AllReduce; leave distribution out"
            )
        own = {name: value for name, value in given.items() if not name.startswith(PREFIX)}
        return _xgboost(own, _scaling(definition, tables), objective)
    return _script(given, definition, image, tables)


def _xgboost(own: dict[str, Any], scaling: ScalingConfig, objective: str) -> XGBoostTrainer:
    metrics = own.get("eval_metric")
    if isinstance(metrics, str):
        own["eval_metric"] = [each.strip() for each in metrics.split(",")]
    if metrics is None and objective:
        own["eval_metric"] = [objective.rpartition(":")[2]]
    if own.get("tree_method") == "exact" and scaling.num_workers != 1:
        own["tree_method"] = "approx"  # The service's XGBoost does so itself where rows are distributed.
    if "csv_weights" in own:
        raise invalid("csv_weights is nothing here: a channel's weights are named in a job file; leave it out")
    return XGBoostTrainer(scaling=scaling, hyperparameters=own)


def _script(given: dict[str, Any], definition: Definition, image: str, tables: Tables) -> ScriptTrainer:
    program, source = (str(given.get(name, "")) for name in (PROGRAM, SOURCE))
    if not program or not source:
        raise invalid(
            f"HyperParameters name no program: an image that runs scripts takes {PROGRAM} and {SOURCE}, which the "
            "SDK's estimators set from entry_point and source_dir"
        )
    if not tables.allow_code:
        raise ServiceError(
            "AccessDeniedException", "programs of clients do not run here: the server has to have --allow-code", 403
        )
    _check_modes(definition)
    _check_checkpoints(definition)
    instance, instances = _instances(definition, tables)
    distribution = distribution_of(given, image, instances, instance.gpus)
    level, region = given.get(LOG_LEVEL, _USUAL_LOG_LEVEL), given.get(REGION)
    own = {name: value for name, value in given.items() if not name.startswith(PREFIX)}
    environment = {
        **({"SM_LOG_LEVEL": str(level)} if level != _USUAL_LOG_LEVEL else {}),
        **({"SAGEMAKER_REGION": str(region)} if region else {}),
        **(definition.get("Environment") or {}),
    }
    length = environment.pop(LENGTH, None)
    try:
        return ScriptTrainer(
            program,
            source_dir=_source(source),
            launcher=distribution.launcher,
            processes_per_worker=distribution.processes,
            parameter_servers=distribution.servers,
            scaling=_scaling(
                definition, tables, servers=distribution.servers, together=distribution.launcher.startswith("mpirun")
            ),
            hyperparameters=with_own_folders(own, image),
            metric_definitions=definition["AlgorithmSpecification"].get("MetricDefinitions"),
            environment=environment,
            length=int(length) if length and length.isdecimal() else length,
        )
    except ConfigurationError as error:
        if distribution.launcher.startswith("mpirun ") and "launcher" in str(error):
            raise invalid(f"hyperparameter {MPI_OPTIONS} is {given[MPI_OPTIONS]!r}: {error}") from None
        raise


def _check_modes(definition: Definition) -> None:
    """Refuse pipes, which a program would look for in place of files."""
    modes = {"TrainingInputMode": definition["AlgorithmSpecification"].get("TrainingInputMode")}
    modes |= {
        f"InputMode of channel {each['ChannelName']!r}": each.get("InputMode")
        for each in definition.get("InputDataConfig", ())
    }
    for field, mode in modes.items():
        if mode == "Pipe":
            raise invalid(f"{field} is 'Pipe', and a program is given files; give File or FastFile")


def _check_checkpoints(definition: Definition) -> None:
    """Refuse a folder with checkpoints of an earlier training, from which the service would go on."""
    uri = definition.get("CheckpointConfig", {}).get("S3Uri", "")
    try:
        names = storage.names(uri) if uri else []
    except WarmbandError as error:
        raise invalid(f"CheckpointConfig.S3Uri is {uri!r}, which cannot be looked into: {error}") from None
    if names:
        raise invalid(
            f"CheckpointConfig.S3Uri is {uri!r} and has {names[0]!r}, from which this training would not go on; give "
            "it as a channel, and read that in the program, or give an empty folder"
        )


def _instances(definition: Definition, tables: Tables) -> tuple[Instance, int]:
    """Resources of an instance, and the number of instances."""
    asked = definition.get("HyperParameterTuningResourceConfig") or definition.get("ResourceConfig") or {}
    name, count = str(asked.get("InstanceType", "ml.m5.large")), int(asked.get("InstanceCount", 1))
    if count < 1:
        raise invalid(f"InstanceCount is {count}; give the number of workers, 1 or more")
    found = tables.instance(name)
    if found is None:
        raise invalid(f"InstanceType {name!r} is in no table; name it in the file of hpo serve --aws-tables")
    return found, count


def _scaling(definition: Definition, tables: Tables, *, servers: int = 0, together: bool = False) -> ScalingConfig:
    """The workers of a definition.

    Args:
        definition: of a training.
        tables: of instance types.
        servers: parameter servers, one beside the worker of each instance; the two share its cores.
        together: whether all workers have to be on one node.
    """
    instance, count = _instances(definition, tables)
    resources: dict[str, float] = {"CPU": instance.cpus / 2 if servers else instance.cpus}
    if instance.gpus:
        resources["GPU"] = instance.gpus
    return ScalingConfig(
        num_workers=count + servers,
        use_gpu=bool(instance.gpus),
        resources_per_worker=resources,
        placement_strategy="STRICT_PACK" if together and count > 1 else "PACK",
    )


def channels_of(definition: Definition, trainer: Trainer) -> dict[str, Any] | None:
    """The channels of a definition; None where it has none.

    Raises:
        ServiceError: a channel is of a kind that nothing here reads.
        WarmbandError: its source is missing or wrong.
    """
    found: dict[str, Any] = {}
    channels = definition.get("InputDataConfig", ())
    for channel in channels:
        name, source = channel["ChannelName"], channel["DataSource"].get("S3DataSource")
        if len(channels) == 1 and name == "training" and not isinstance(trainer, ScriptTrainer):
            name = "train"  # The SDK calls the one channel of fit("s3://...") so.
        if source is None:
            raise invalid(f"channel {name!r} has no S3DataSource; give one")
        if source["S3DataType"] not in ("S3Prefix", "ManifestFile"):
            raise invalid(f"channel {name!r} has S3DataType {source['S3DataType']!r}; give S3Prefix or ManifestFile")
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
        raise invalid(f"{SOURCE} {uri!r} cannot be read: {error}") from None
    folder = home() / "serve" / "sources" / hashlib.blake2b(packed, digest_size=16).hexdigest()
    if folder.is_dir():
        return str(folder)
    with temporary_folder(folder.parent, prefix=".unpacked-") as draft:
        _unpack(packed, uri, draft)
        with suppress(OSError):  # Another request was faster.
            draft.rename(folder)
    return str(folder)


def _unpack(packed: bytes, uri: str, folder: Path) -> None:
    try:
        with archive_errors(), tarfile.open(fileobj=io.BytesIO(packed), mode="r:*") as archive:
            extract(archive, str(folder), MOST_SOURCE)
    except (FlawedArchiveError, OSError) as error:
        raise invalid(f"{SOURCE} {uri!r} is no archive of tar: {error}") from None


def _value(text: str) -> Any:
    """A hyperparameter as its program means it: the SDK writes values as JSON, or as plain text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str | int | float | bool | list) else text
