"""Environment of a program: hyperparameters and folders by SageMaker's names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainers.script.arguments import arguments_of
from trainers.script.launchers import Place

TYPED = "warmband_hyperparameters.json"
"""The file of the hyperparameters as they are; in SageMaker's all are strings."""

_LOG_LEVEL = 20  # INFO, as SageMaker's.


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The folders and files of one program on one worker, as paths.

    Args:
        code: where the entry point is.
        model: for the model that the program leaves.
        output: for all else that it leaves, with `output_data` within it.
        output_data: see `output`.
        input: what the program is given, with `config` within it.
        config: the files of `files_of`.
        checkpoint: for checkpoints: what is there as it starts is what it goes on from.
        reports: the file that it may append a JSON object a unit to.
    """

    code: str
    model: str
    output: str
    output_data: str
    input: str
    config: str
    checkpoint: str
    reports: str

    @classmethod
    def under(cls, root: str | os.PathLike[str], code: str | os.PathLike[str]) -> Folders:
        """Those of SageMaker's layout, in which `root` is /opt/ml; nothing is made."""
        top = Path(root)
        return cls(
            code=str(code),
            model=str(top / "model"),
            output=str(top / "output"),
            output_data=str(top / "output" / "data"),
            input=str(top / "input"),
            config=str(top / "input" / "config"),
            checkpoint=str(top / "checkpoints"),
            reports=str(top / "output" / "reports.jsonl"),
        )


def environment_of(
    hyperparameters: Mapping[str, Any],
    *,
    entry_point: str,
    channels: Mapping[str, str],
    folders: Folders,
    place: Place,
    job_name: str = "",
    interface: str = "",
    distributions: Mapping[str, str] | None = None,
    arguments: Sequence[str] | None = None,
) -> dict[str, str]:
    """The variables of a program, with SageMaker's names and meanings, and Warmband's own.

    `SM_MASTER_ADDR` is an address: names such as "algo-1" are known to SageMaker's network alone.

    Args:
        hyperparameters: by their names.
        entry_point: the program's file, from the folder of the code.
        channels: the folder of each channel's files.
        folders: of this worker.
        place: of this worker.
        job_name: of the tuning job.
        interface: network interface by which the nodes reach each other, if known.
        distributions: how a channel's files came to the workers, where that is not whole to each; see `Folder`.
        arguments: the program's; None: those of `arguments_of`.
    """
    known = dict(hyperparameters)
    training = _training_env(known, entry_point, channels, folders, place, job_name, distributions or {})
    training |= {"network_interface_name": interface} if interface else {}
    shared = {name: training[name] for name in _SHARED if name in training}
    variables = {
        **shared,
        "hps": known,
        "user_args": arguments_of(known) if arguments is None else list(arguments),
        "framework_params": training["additional_framework_parameters"],
        "channels": sorted(channels),
        "checkpoint_dir": folders.checkpoint,
        "master_addr": place.master,
        "master_port": place.master_port,
        "host_count": place.world_size,
        "current_host_rank": place.rank,
        "training_env": training,
        **{f"channel_{name}": folder for name, folder in channels.items()},
        **{f"hp_{name}": value for name, value in known.items()},
    }
    return {
        **{f"SM_{name.upper()}": _text(value) for name, value in variables.items()},
        "WARMBAND_MACHINES": place.machines,
        "WARMBAND_REPORTS": folders.reports,
        "WARMBAND_HYPERPARAMETERS": str(Path(folders.config) / TYPED),
    }


_SHARED = (
    "hosts",
    "network_interface_name",
    "user_entry_point",
    "resource_config",
    "input_data_config",
    "output_data_dir",
    "current_host",
    "current_instance_type",
    "current_instance_group",
    "module_name",
    "module_dir",
    "log_level",
    "input_dir",
    "input_config_dir",
    "output_dir",
    "num_cpus",
    "num_gpus",
    "model_dir",
)
"""What of `SM_TRAINING_ENV` has a variable of its own."""


def _text(value: Any) -> str:
    """A variable's value as sagemaker-training writes it."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _training_env(
    hyperparameters: dict[str, Any],
    entry_point: str,
    channels: Mapping[str, str],
    folders: Folders,
    place: Place,
    job_name: str,
    distributions: Mapping[str, str],
) -> dict[str, Any]:
    resources = _resources(place)
    return {
        "additional_framework_parameters": {},
        "channel_input_dirs": dict(channels),
        "current_host": resources["current_host"],
        "current_instance_group": resources["current_group_name"],
        "current_instance_type": resources["current_instance_type"],
        "hosts": resources["hosts"],
        "hyperparameters": hyperparameters,
        "input_config_dir": folders.config,
        "input_data_config": _input_data(channels, distributions),
        "input_dir": folders.input,
        "is_master": place.rank == 0,
        "job_name": job_name,
        "log_level": _LOG_LEVEL,
        "master_hostname": resources["hosts"][0],
        "model_dir": folders.model,
        "module_dir": folders.code,
        "module_name": entry_point.removesuffix(".py"),
        "num_cpus": place.cpus,
        "num_gpus": place.gpus,
        "output_data_dir": folders.output_data,
        "output_dir": folders.output,
        "resource_config": resources,
        "user_entry_point": entry_point,
    }


def _resources(place: Place) -> dict[str, Any]:
    hosts = [f"algo-{rank + 1}" for rank in range(place.world_size)]
    return {
        "current_host": hosts[place.rank],
        "current_group_name": "homogeneousCluster",
        "current_instance_type": "local",
        "hosts": hosts,
        "instance_groups": [
            {"instance_group_name": "homogeneousCluster", "instance_type": "local", "hosts": hosts},
        ],
    }


def _input_data(channels: Mapping[str, str], distributions: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {
        name: {
            "TrainingInputMode": "File",
            "S3DistributionType": distributions.get(name, "FullyReplicated"),
            "RecordWrapperType": "None",
        }
        for name in channels
    }


def files_of(
    hyperparameters: Mapping[str, Any],
    *,
    channels: Mapping[str, str],
    place: Place,
    distributions: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The texts of the files in the configuration's folder, by their names: SageMaker's three, and `TYPED`.

    Args:
        hyperparameters: by their names.
        channels: the folder of each channel's files.
        place: of this worker.
        distributions: see `environment_of`.
    """
    known = dict(hyperparameters)
    strings = {name: value if isinstance(value, str) else json.dumps(value) for name, value in known.items()}
    contents: dict[str, Any] = {
        "hyperparameters.json": strings,
        "resourceconfig.json": _resources(place),
        "inputdataconfig.json": _input_data(channels, distributions or {}),
        TYPED: known,
    }
    return {name: json.dumps(content, indent=2) for name, content in contents.items()}
