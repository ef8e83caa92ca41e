"""Settings of the service's requests, and the hyperparameters of its SDK's own: honoured, kept or refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hpo.serve.aws.errors import invalid
from trainers.checking import did_you_mean


class Treatment(StrEnum):
    """Treatment of a setting by this server."""

    HONOURED = "honoured"
    KEPT = "kept, without effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A field of a request, or a hyperparameter by which the SDK talks to the service's containers.

    Args:
        name: path of the field in a training's definition, or name of the hyperparameter.
        argument: of the SDK's estimators that sets it; empty where none does.
        treatment: by this server.
        note: effect of an honoured setting, reason for another one; what to do instead of a refused one.
        harmless: values of a refused setting that ask for nothing, beside empty ones.
    """

    name: str
    argument: str
    treatment: Treatment
    note: str
    harmless: tuple[object, ...] = ()

    def refuses(self, value: object) -> bool:
        """Whether the server refuses a value of this setting."""
        return self.treatment is Treatment.REFUSED and not (_is_nothing(value) or value in self.harmless)


PREFIX = "sagemaker_"
"""Beginning of the hyperparameters by which the SDK talks to the service's containers."""

OBJECTIVE = "_tuning_objective_metric"
"""Hyperparameter in which the service tells the trainings of a tuning job their objective; the SDK sends it again."""

CHECKPOINTS = "/opt/ml/checkpoints"
"""Folder of checkpoints in the service's containers."""

TORCH, DDP = "sagemaker_torch_distributed_enabled", "sagemaker_pytorch_ddp_enabled"
MPI, MPI_PROCESSES = "sagemaker_mpi_enabled", "sagemaker_mpi_num_of_processes_per_host"
MPI_OPTIONS, MPI_ALL = "sagemaker_mpi_custom_mpi_options", "sagemaker_mpi_num_processes"
MIRRORED = "sagemaker_multi_worker_mirrored_strategy_enabled"
SERVERS = "sagemaker_parameter_server_enabled"
PROGRAM, SOURCE = "sagemaker_program", "sagemaker_submit_directory"
LOG_LEVEL, REGION = "sagemaker_container_log_level", "sagemaker_region"


def _table(*groups: tuple[Treatment, Mapping[str, tuple[str, str] | tuple[str, str, tuple[object, ...]]]]) -> Any:
    """The settings by their names; each as argument, note and perhaps harmless values."""
    return {
        name: Setting(name=name, treatment=treatment, argument=argument, note=note, harmless=tuple(*harmless))
        for treatment, entries in groups
        for name, (argument, note, *harmless) in entries.items()
    }


FIELDS: dict[str, Setting] = _table(
    (
        Treatment.HONOURED,
        {
            "TrainingJobName": ("fit(job_name=)", "name of the job"),
            "Tags": ("tags", "tags of the job"),
            "HyperParameters": ("hyperparameters", "see the second table"),
            "StaticHyperParameters": ("hyperparameters", "see the second table"),
            "HyperParameterRanges": ("create(hyperparameter_ranges_dict=)", "ranges of a definition"),
            "TuningObjective": ("create(objective_metric_name_dict=)", "objective of a definition"),
            "DefinitionName": ("create(estimator_dict=)", "name of a definition"),
            "AlgorithmSpecification.TrainingImage": (
                "image_uri, framework_version",
                "the trainer, by the tables above",
            ),
            "AlgorithmSpecification.AlgorithmName": ("AlgorithmEstimator(algorithm_arn=)", "as an image"),
            "AlgorithmSpecification.TrainingInputMode": (
                "input_mode",
                "`File` and `FastFile`: files; `Pipe` is refused for a program",
            ),
            "AlgorithmSpecification.MetricDefinitions": (
                "metric_definitions",
                "read from what a program prints; XGBoost reports its metrics itself",
            ),
            "InputDataConfig.ChannelName": ("fit(inputs=)", "name of a channel"),
            "InputDataConfig.ContentType": ("TrainingInput(content_type=)", "for rows: `csv` has no header"),
            "InputDataConfig.InputMode": ("TrainingInput(input_mode=)", "as `TrainingInputMode`"),
            "InputDataConfig.DataSource.S3DataSource.S3Uri": ("TrainingInput(s3_data=)", "files of a channel"),
            "InputDataConfig.DataSource.S3DataSource.S3DataType": (
                "TrainingInput(s3_data_type=)",
                "`S3Prefix` and `ManifestFile`",
            ),
            "InputDataConfig.DataSource.S3DataSource.S3DataDistributionType": (
                "TrainingInput(distribution=)",
                "as there for programs; rows of XGBoost are always dealt out",
            ),
            "OutputDataConfig.S3OutputPath": ("output_path", "place of models and checkpoints"),
            "ResourceConfig.InstanceType": ("instance_type", "resources of a worker, by the table above"),
            "ResourceConfig.InstanceCount": ("instance_count", "workers"),
            "HyperParameterTuningResourceConfig.InstanceType": (
                "override_resource_config()",
                "resources of a worker, by the table above",
            ),
            "HyperParameterTuningResourceConfig.InstanceCount": ("override_resource_config()", "workers"),
            "StoppingCondition.MaxRuntimeInSeconds": ("max_run", "longest time of a training"),
            "StoppingCondition.MaxWaitTimeInSeconds": ("max_wait", "with `use_spot_instances`"),
            "EnableManagedSpotTraining": (
                "use_spot_instances",
                "`max_wait` counts; who holds machines says their price",
            ),
            "Environment": ("environment", "variables of a program; XGBoost reads none"),
        },
    ),
    (
        Treatment.KEPT,
        {
            "RoleArn": ("role", "the server's own user reads and writes"),
            "VpcConfig": ("subnets, security_group_ids", "workers are in the network of your machines"),
            "ResourceConfig.VolumeSizeInGB": ("volume_size", "workers have the disks of your machines"),
            "HyperParameterTuningResourceConfig.VolumeSizeInGB": (
                "override_resource_config()",
                "workers have the disks of your machines",
            ),
            "ResourceConfig.KeepAlivePeriodInSeconds": (
                "keep_alive_period_in_seconds",
                "a gang stays warm for all trials of its job",
            ),
            "CheckpointConfig.S3Uri": (
                "checkpoint_s3_uri",
                "checkpoints lie below `S3OutputPath`; a folder that has some of a program's is refused",
            ),
            "RetryStrategy": ("max_retry_attempts", "a worker that dies is replaced in any case"),
            "DebugHookConfig": ("debugger_hook_config", "no tensors are saved"),
            "ProfilerConfig": ("profiler_config", "nothing is profiled"),
            "ProfilerRuleConfigurations": ("rules", "no rules are evaluated"),
            "ExperimentConfig": ("fit(experiment_config=)", "use `tags`"),
            "InfraCheckConfig": ("enable_infra_check", "machines are not checked before"),
            "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries": (
                "enable_sagemaker_metrics",
                "every report is recorded in any case",
            ),
            "AlgorithmSpecification.TrainingImageConfig": ("training_repository_access_mode", "no image is pulled"),
        },
    ),
    (
        Treatment.REFUSED,
        {
            "AlgorithmSpecification.ContainerEntrypoint": (
                "container_entry_point",
                "no container is started; give entry_point and source_dir of SDK 2's framework estimators",
            ),
            "AlgorithmSpecification.ContainerArguments": (
                "container_arguments",
                "no container is started; give hyperparameters of a framework's estimator",
            ),
            "InputDataConfig.CompressionType": (
                "TrainingInput(compression=)",
                "files are read as they are; unpack them, or leave it out",
                ("None",),
            ),
            "InputDataConfig.RecordWrapperType": (
                "TrainingInput(record_wrapping=)",
                "RecordIO is not read; give None",
                ("None",),
            ),
            "InputDataConfig.ShuffleConfig": (
                "TrainingInput(shuffle_config=)",
                "the order of files is theirs; shuffle in the program",
            ),
            "InputDataConfig.DataSource.S3DataSource.AttributeNames": (
                "TrainingInput(attribute_names=)",
                "augmented manifests are not read; give S3Prefix or ManifestFile",
            ),
            "InputDataConfig.DataSource.S3DataSource.InstanceGroupNames": (
                "TrainingInput(instance_groups=)",
                "all workers are alike; leave it out",
            ),
            "InputDataConfig.DataSource.S3DataSource.ModelAccessConfig": (
                "JumpStartEstimator",
                "models of hubs are not here; give an S3Uri of your own",
            ),
            "InputDataConfig.DataSource.S3DataSource.HubAccessConfig": (
                "JumpStartEstimator",
                "models of hubs are not here; give an S3Uri of your own",
            ),
            "InputDataConfig.DataSource.FileSystemDataSource": (
                "FileSystemInput",
                "file systems are not mounted; give an S3DataSource",
            ),
            "InputDataConfig.DataSource.DatasetSource": ("", "data sets of hubs are not here; give an S3DataSource"),
            "OutputDataConfig.KmsKeyId": (
                "output_kms_key",
                "models would be stored without that key; encrypt the bucket by default, and leave it out",
            ),
            "OutputDataConfig.CompressionType": (
                "disable_output_compression",
                "a model is a tar.gz archive; give GZIP, or leave it out",
                ("GZIP",),
            ),
            "ResourceConfig.VolumeKmsKeyId": (
                "volume_kms_key",
                "disks are those of your machines; encrypt them there, and leave it out",
            ),
            "HyperParameterTuningResourceConfig.VolumeKmsKeyId": (
                "override_resource_config()",
                "disks are those of your machines; encrypt them there, and leave it out",
            ),
            "ResourceConfig.InstanceGroups": (
                "instance_groups",
                "all workers are alike; give one InstanceType and InstanceCount",
            ),
            "HyperParameterTuningResourceConfig.InstanceConfigs": (
                "override_resource_config()",
                "all workers are alike; give one InstanceType and InstanceCount",
            ),
            "HyperParameterTuningResourceConfig.AllocationStrategy": (
                "override_resource_config()",
                "there is nothing to choose from; give one InstanceType and InstanceCount",
            ),
            "ResourceConfig.TrainingPlanArn": ("training_plan", "no capacity is reserved; leave it out"),
            "ResourceConfig.InstancePlacementConfig": (
                "instance_placement_config",
                "Ray places workers; leave it out",
            ),
            "ResourceConfig.InstancePreferences": ("", "all workers are alike; give one InstanceType"),
            "StoppingCondition.MaxPendingTimeInSeconds": (
                "",
                "a job waits for machines as long as it takes; give max_run, or use_spot_instances and max_wait",
            ),
            "EnableNetworkIsolation": (
                "enable_network_isolation",
                "a program reaches the network of your machines; isolate them there, and leave it out",
            ),
            "EnableInterContainerTrafficEncryption": (
                "encrypt_inter_container_traffic",
                "workers talk to each other unencrypted; put them into a network of their own, and leave it out",
            ),
            "CheckpointConfig.LocalPath": (
                "checkpoint_local_path",
                f"a program finds its folder in SM_CHECKPOINT_DIR; read that, and leave it out or give {CHECKPOINTS}",
                (CHECKPOINTS, f"{CHECKPOINTS}/"),
            ),
            "DebugRuleConfigurations": ("rules", "no rule stops a training; leave it out, or set early_stopping_type"),
            "TensorBoardOutputConfig": (
                "tensorboard_output_config",
                "nothing is copied from that folder; write to SM_OUTPUT_DATA_DIR",
            ),
            "RemoteDebugConfig.EnableRemoteDebug": ("remote_debug_config", "there is no container; leave it out"),
            "SessionChainingConfig.EnableSessionTagChaining": (
                "session_chaining_config",
                "no role is taken; leave it out",
            ),
            "ServerlessJobConfig": ("", "give ResourceConfig"),
            "MlflowConfig": ("", "give trackers in a job file"),
            "ModelPackageConfig": ("", "models are registered by `hpo register`"),
        },
    ),
)
"""Fields of a training's definition, by their paths."""

HYPERPARAMETERS: dict[str, Setting] = _table(
    (
        Treatment.HONOURED,
        {
            PROGRAM: ("entry_point", "the program"),
            SOURCE: (
                "source_dir, dependencies, git_config, code_location",
                "the archive that the SDK packs of them; `requirements.txt` in it is not installed",
            ),
            TORCH: ('{"torch_distributed": {"enabled": True}}', "launcher `torchrun`"),
            DDP: ('{"pytorchddp": {"enabled": True}}', "launcher `torchrun`"),
            MPI: ('{"mpi": {"enabled": True}}', "launcher `mpirun`"),
            MPI_PROCESSES: ('{"mpi": {"processes_per_host": 4}}', "processes of each worker, of `torchrun` too"),
            MPI_OPTIONS: (
                '{"mpi": {"custom_mpi_options": "..."}}',
                "options of `mpirun`; `--NCCL_DEBUG` is a variable",
            ),
            MIRRORED: ('{"multi_worker_mirrored_strategy": {"enabled": True}}', "launcher `tensorflow`"),
            SERVERS: (
                '{"parameter_server": {"enabled": True}}',
                "launcher `tensorflow`, one parameter server an instance, beside the instance's worker; "
                "one instance alone has none, as there",
            ),
            LOG_LEVEL: ("container_log_level", "`SM_LOG_LEVEL` of a program"),
            REGION: ("", "`SAGEMAKER_REGION` of a program"),
        },
    ),
    (
        Treatment.KEPT,
        {
            "sagemaker_job_name": ("", "a job's name is in its request"),
            "sagemaker_instance_type": ("", "a job's instance type is in its request"),
            "sagemaker_estimator_class_name": ("fit(include_cls_metadata=)", "for the SDK's `attach`"),
            "sagemaker_estimator_module": ("fit(include_cls_metadata=)", "for the SDK's `attach`"),
            "sagemaker_enable_cloudwatch_metrics": ("", "every report is recorded in any case"),
            "sagemaker_model_server_workers": ("", "is for endpoints"),
        },
    ),
    (
        Treatment.REFUSED,
        {
            MPI_ALL: ("", "all workers have as many processes; give processes_per_host"),
            "sagemaker_distributed_dataparallel_enabled": (
                '{"smdistributed": {"dataparallel": {"enabled": True}}}',
                "that library is in the service alone, and the SDK's PyTorch asks for it where pytorchddp is given; "
                "give torch_distributed, or mpi",
            ),
            "sagemaker_distributed_dataparallel_custom_mpi_options": (
                '{"smdistributed": {"dataparallel": {"custom_mpi_options": "..."}}}',
                "that library is in the service alone; give mpi",
            ),
            "mp_parameters": (
                '{"smdistributed": {"modelparallel": {"enabled": True}}}',
                "that library is in the service alone; give torch_distributed, and FSDP in the program",
            ),
            "sagemaker_distribution_instance_groups": (
                '{"instance_groups": [...]}',
                "all workers are alike; leave it out",
            ),
            "sagemaker_pytorch_xla_multi_worker_enabled": (
                '{"pytorchxla": {"enabled": True}}',
                "Trainium is not here; give torch_distributed",
            ),
            "sagemaker_training_compiler_enabled": (
                "compiler_config",
                "that compiler is in the service alone; leave it out, or call torch.compile in the program",
            ),
            "sagemaker_training_compiler_debug_mode": ("compiler_config", "that compiler is in the service alone"),
            "sagemaker_recipe_local_path": ("training_recipe", "recipes are not here; give entry_point"),
            "sagemaker_requirements": ("requirements_file", "nothing is installed; prepare the server's environment"),
            "sagemaker_s3_output": ("", "nothing is copied there; write to SM_OUTPUT_DATA_DIR"),
            "sagemaker_network_interface_name": ("", "workers find their interface; leave it out"),
            "sagemaker_estimator": ("RLEstimator", "its toolkits are not here; give a framework's estimator"),
            "sagemaker_use_mpi": ("Chainer(use_mpi=)", 'give distribution={"mpi": {"enabled": True}}'),
            "sagemaker_num_processes": ("Chainer(num_processes=)", "give processes_per_host of mpi"),
            "sagemaker_process_slots_per_host": ("Chainer(process_slots_per_host=)", "give processes_per_host of mpi"),
            "sagemaker_additional_mpi_options": ("Chainer(additional_mpi_options=)", "give custom_mpi_options of mpi"),
        },
    ),
)
"""Hyperparameters by which the SDK's estimators talk to the service's containers."""

_DEFINITION = re.compile(r"TrainingJobDefinitions?\.")
_SEARCH = (
    "HyperParameterTuningJobName",
    "HyperParameterTuningJobConfig",
    "WarmStartConfig",
    "Autotune",
)
"""Members of CreateHyperParameterTuningJob beside definitions; whoever makes the tuner reads all of them."""


def check_fields(request: Mapping[str, Any]) -> None:
    """Refuse a request with a field that is refused here, or that this server does not know.

    Args:
        request: of CreateTrainingJob or CreateHyperParameterTuningJob.

    Raises:
        ServiceError: naming the field, its value and what to do.
    """
    for path, value in _leaves({name: each for name, each in request.items() if name not in _SEARCH}, ""):
        name = _DEFINITION.sub("", path, count=1)
        setting = FIELDS.get(name)
        if setting is None and not _is_nothing(value):
            raise invalid(f"{path} is {_shown(value)}, which this server does not know; leave it out")
        if setting is not None and setting.refuses(value):
            raise invalid(f"{path} is {_shown(value)}: {setting.note}")


def check_hyperparameters(given: Mapping[str, Any]) -> None:
    """Refuse hyperparameters of the SDK's own that are refused here, or unknown.

    Args:
        given: the hyperparameters, as values.

    Raises:
        ServiceError: naming the hyperparameter, its value and what to do.
    """
    for name, value in given.items():
        setting = HYPERPARAMETERS.get(name)
        if setting is None and name.startswith(PREFIX):
            raise invalid(
                f"hyperparameter {name} is {_shown(value)}: names that begin with {PREFIX} are the SDK's own, and this "
                f"is none that this server knows; leave it out, or rename it{did_you_mean(name, HYPERPARAMETERS)}"
            )
        if setting is not None and setting.refuses(value):
            argument = f", distribution={setting.argument}" if setting.argument.startswith("{") else ""
            raise invalid(f"hyperparameter {name} is {_shown(value)}{argument}: {setting.note}")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The fields of a request that the table has, and those below which it has none, as path and value."""
    name = _DEFINITION.sub("", path, count=1)
    if isinstance(value, list) and name not in FIELDS:
        for each in value:
            yield from _leaves(each, path)
    elif isinstance(value, Mapping) and name not in FIELDS:
        for member, each in value.items():
            yield from _leaves(each, f"{path}.{member}" if path else member)
    elif path:
        yield path, value


def _is_nothing(value: object) -> bool:
    """Whether a value asks for nothing: false, an empty text, or structures of such values."""
    if isinstance(value, Mapping):
        return all(map(_is_nothing, value.values()))
    if isinstance(value, list):
        return not value
    return value is None or value is False or value == ""


def _shown(value: object) -> str:
    return f"{value!r:.200}"


def settings_tables() -> str:
    """Return both tables as Markdown, for the docs."""
    return "\n".join([*_rows("field", FIELDS), "", *_rows("hyperparameter", HYPERPARAMETERS), ""])


def _rows(kind: str, settings: Mapping[str, Setting]) -> Iterator[str]:
    yield f"| argument of the SDK | {kind} | here | |"
    yield "|---|---|---|---|"
    for each in settings.values():
        argument = f"`{each.argument}`" if each.argument else ""
        yield f"| {argument} | `{each.name}` | {each.treatment} | {each.note} |"
