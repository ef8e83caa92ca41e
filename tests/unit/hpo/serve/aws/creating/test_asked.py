"""Requests of the service in Warmband's terms: what they ask for is what is made, and what is not here is named."""

from __future__ import annotations

import copy
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hpo.serve.aws import ServiceError
from hpo.serve.aws.creating import Tables, read_tables
from hpo.serve.aws.creating.asked import training_of, tuning_of
from tests.support.refusals import refuses
from trainers import ConfigurationError, Folder, ScriptTrainer, XGBoostTrainer

IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1-cpu-py310"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    frame = pd.DataFrame({"y": [0, 1] * 20, "a": range(40)})
    for channel in ("train", "validation"):
        (tmp_path / channel).mkdir()
        frame.to_csv(tmp_path / channel / "rows.csv", index=False, header=False)
    return tmp_path


def channel(folder: Path, name: str, **source: str) -> dict[str, Any]:
    given = {"S3DataType": "S3Prefix", "S3Uri": f"file://{folder}/{name}", **source}
    return {"ChannelName": name, "ContentType": "text/csv", "DataSource": {"S3DataSource": given}}


def definition(folder: Path, image: str = IMAGE, **changed: Any) -> dict[str, Any]:
    return {
        "AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/anybody",
        "InputDataConfig": [channel(folder, "train"), channel(folder, "validation")],
        "OutputDataConfig": {"S3OutputPath": f"{folder}/models/"},
        "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 3, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 900},
        **changed,
    }


def training(folder: Path, **changed: Any) -> dict[str, Any]:
    values = {"objective": "binary:logistic", "eval_metric": "auc,logloss", "num_round": "5", "eta": "0.3"}
    return {"TrainingJobName": "one", **definition(folder), "HyperParameters": values, **changed}


def tuning(folder: Path, **config: Any) -> dict[str, Any]:
    return {
        "HyperParameterTuningJobName": "many",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Hyperband",
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}},
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "validation:logloss"},
            "ResourceLimits": {
                "MaxNumberOfTrainingJobs": 12,
                "MaxParallelTrainingJobs": 3,
                "MaxRuntimeInSeconds": 7200,
            },
            "ParameterRanges": {
                "IntegerParameterRanges": [{"Name": "max_depth", "MinValue": "1", "MaxValue": "6"}],
                "ContinuousParameterRanges": [
                    {"Name": "eta", "MinValue": "0.01", "MaxValue": "1", "ScalingType": "Logarithmic"}
                ],
                "CategoricalParameterRanges": [{"Name": "booster", "Values": ["gbtree", '"dart"']}],
            },
            "RandomSeed": 7,
            **config,
        },
        "TrainingJobDefinition": {
            **definition(folder),
            "StaticHyperParameters": {"objective": "binary:logistic"},
        },
    }


@pytest.fixture
def tables() -> Tables:
    return read_tables(None, allow_code=True)


def test_a_training_is_what_its_request_says(data: Path, tables: Tables) -> None:
    made, channels = training_of(training(data), tables, None)
    trainer = made.settings.estimator
    assert isinstance(trainer, XGBoostTrainer)
    assert trainer.scaling.num_workers == 3
    assert trainer.hyperparameters == {
        "objective": "binary:logistic",
        "eval_metric": ["auc", "logloss"],
        "num_round": 5,
        "eta": 0.3,
    }
    assert made.settings.max_runtime_in_seconds == 600
    assert made.settings.options["max_wait"] is None
    assert made.settings.options["storage_path"] == f"{data}/models"
    assert channels is not None
    assert {name: one.describe()["rows"] for name, one in channels.items()} == {"train": None, "validation": None}
    assert all(len(one.read_whole().labels) == 40 for one in channels.values())


@pytest.mark.parametrize(("instances", "method"), [(1, "exact"), (3, "approx")])
def test_exact_trees_are_approximate_on_several_instances(
    data: Path, tables: Tables, instances: int, method: str
) -> None:
    asked = training(data)
    asked["ResourceConfig"]["InstanceCount"] = instances
    asked["HyperParameters"]["tree_method"] = "exact"
    trainer = training_of(asked, tables, None)[0].settings.estimator
    assert trainer.hyperparameters["tree_method"] == method


def test_spot_waits_as_long_as_the_request_says(data: Path, tables: Tables) -> None:
    made, _ = training_of(training(data, EnableManagedSpotTraining=True), tables, None)
    assert made.settings.options["max_wait"] == 900


def test_trainings_of_a_search_have_the_limits_of_their_definition(data: Path, tables: Tables) -> None:
    asked = tuning(data)
    options = tuning_of(asked, tables, None)[0].settings.options
    assert (options["max_trial_runtime"], options["max_trial_wait"], options["max_wait"]) == (600, None, None)
    asked["TrainingJobDefinition"]["EnableManagedSpotTraining"] = True
    options = tuning_of(asked, tables, None)[0].settings.options
    assert (options["max_trial_runtime"], options["max_trial_wait"]) == (600, 900)
    assert options["max_wait"] == 12 * 900, "all of them may wait so long, one after the other"


def test_a_search_is_what_its_request_says(data: Path, tables: Tables) -> None:
    criteria = {
        "TargetObjectiveMetricValue": 0.1,
        "BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 5},
        "ConvergenceDetected": {"CompleteOnConvergence": "Enabled"},
    }
    made, _ = tuning_of(tuning(data, TuningJobCompletionCriteria=criteria), tables, None)
    settings = made.settings
    assert (settings.objective_metric_name, settings.objective_type) == ("validation:logloss", "Minimize")
    assert (settings.max_jobs, settings.max_parallel_jobs, settings.max_runtime_in_seconds) == (12, 3, 7200)
    assert settings.random_seed == 7
    ranges = {name: one.to_json() for name, one in settings.ranges.items()}
    assert ranges["max_depth"]["max_value"] == 6
    assert (ranges["eta"]["min_value"], ranges["eta"]["scaling_type"]) == (0.01, "Logarithmic")
    assert ranges["booster"]["values"] == ["gbtree", "dart"]
    assert settings.estimator.hyperparameters["eval_metric"] == ["logloss"], "what is compared is reported"
    found = settings.completion_criteria_config
    assert found.target_objective_metric_value == 0.1
    assert found.complete_on_convergence is True


def test_several_definitions_are_one_search(data: Path, tables: Tables) -> None:
    request = tuning(data)
    config = request["HyperParameterTuningJobConfig"]
    one = request.pop("TrainingJobDefinition")
    objective, ranges = config.pop("HyperParameterTuningJobObjective"), config.pop("ParameterRanges")
    shared = {"TuningObjective": objective, "HyperParameterRanges": ranges}
    request["TrainingJobDefinitions"] = [
        {**one, **shared, "DefinitionName": "deep"},
        {**one, **shared, "DefinitionName": "flat", "StaticHyperParameters": {"objective": "reg:squarederror"}},
    ]
    made, _ = tuning_of(request, tables, None)
    assert {"deep.eta", "flat.eta", "estimator"} <= made.settings.ranges.keys()
    request["TrainingJobDefinitions"][1]["InputDataConfig"] = one["InputDataConfig"][:1]
    with refuses(ServiceError, field=("InputDataConfig", "TrainingJobDefinitions")):
        tuning_of(request, tables, None)
    request["TrainingJobDefinitions"][1] |= {"InputDataConfig": one["InputDataConfig"], "EnableNetworkIsolation": True}
    with refuses(ServiceError, field="TrainingJobDefinitions.EnableNetworkIsolation", value=True):
        tuning_of(request, tables, None)


def source(folder: Path) -> str:
    buffer, program = io.BytesIO(), b"print('validation:accuracy=0.5;')\n"
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(program)
        archive.addfile(member, io.BytesIO(program))
    (folder / "sourcedir.tar.gz").write_bytes(buffer.getvalue())
    return f"{folder}/sourcedir.tar.gz"


def script(folder: Path) -> dict[str, Any]:
    request = training(folder)
    request["AlgorithmSpecification"] = {
        "TrainingImage": PYTORCH,
        "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "validation:accuracy", "Regex": "accuracy=([0-9.]+);"}],
    }
    request["HyperParameters"] = {
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": f'"{source(folder)}"',
        "sagemaker_torch_distributed_enabled": "true",
        "sagemaker_region": '"us-east-1"',
        "epochs": "3",
        "name": '"x"',
    }
    return request


def test_a_program_comes_from_its_archive(data: Path, tables: Tables) -> None:
    request = script(data)  # Once: gzip notes the second at which an archive was written.
    made, channels = training_of(request, tables, None)
    trainer = made.settings.estimator
    assert isinstance(trainer, ScriptTrainer)
    assert (trainer.entry_point, trainer.launcher) == ("train.py", "torchrun")
    assert trainer.hyperparameters == {"epochs": 3, "name": "x"}
    assert Path(trainer.source_dir, "train.py").read_text().startswith("print")
    assert channels == {name: Folder(f"file://{data}/{name}") for name in ("train", "validation")}
    again, _ = training_of(request, tables, None)
    assert again.settings.estimator.source_dir == trainer.source_dir


@pytest.mark.parametrize(("told", "length", "units"), [("num-epochs", "num-epochs", 7), ("9", 9, 9)])
def test_the_environment_says_a_programs_length(
    data: Path, tables: Tables, told: str, length: str | int, units: int
) -> None:
    request = script(data)
    request["HyperParameters"]["num-epochs"] = request["HyperParameters"].pop("epochs").replace("3", "7")
    request["Environment"] = {"WARMBAND_LENGTH": told, "MODE": "x"}
    trainer = training_of(request, tables, None)[0].settings.estimator
    assert isinstance(trainer, ScriptTrainer)
    assert (trainer.length, trainer.units) == (length, units)
    assert "WARMBAND_LENGTH" not in trainer.environment
    assert trainer.environment["MODE"] == "x"


def test_what_is_harmless_is_kept(data: Path, tables: Tables) -> None:
    asked = training(
        data,
        VpcConfig={"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
        EnableNetworkIsolation=False,
        CheckpointConfig={"S3Uri": "s3://bucket/checkpoints", "LocalPath": "/opt/ml/checkpoints"},
        DebugHookConfig={"S3OutputPath": "s3://bucket", "CollectionConfigurations": []},
        DebugRuleConfigurations=[],
        ProfilerConfig={"S3OutputPath": "s3://bucket", "DisableProfiler": False},
        ProfilerRuleConfigurations=[{"RuleConfigurationName": "ProfilerReport"}],
        RemoteDebugConfig={"EnableRemoteDebug": False},
        Environment={"A": "1"},
        RetryStrategy={"MaximumRetryAttempts": 3},
    )
    asked["OutputDataConfig"] |= {"KmsKeyId": "", "CompressionType": "GZIP"}
    asked["ResourceConfig"] |= {"KeepAlivePeriodInSeconds": 600}
    asked["HyperParameters"] |= {
        "_tuning_objective_metric": "validation:auc",
        "sagemaker_estimator_class_name": '"Estimator"',
        "sagemaker_estimator_module": '"sagemaker.estimator"',
    }
    trainer = training_of(asked, tables, None)[0].settings.estimator
    assert trainer.hyperparameters.keys() == {"objective", "eval_metric", "num_round", "eta"}


def launched(
    folder: Path, tables: Tables, instance: str, count: int, image: str = PYTORCH, **told: Any
) -> ScriptTrainer:
    """The trainer of a program with hyperparameters of the SDK's own."""
    asked = script(folder)
    asked["AlgorithmSpecification"]["TrainingImage"] = image
    asked["ResourceConfig"] |= {"InstanceType": instance, "InstanceCount": count}
    del asked["HyperParameters"]["sagemaker_torch_distributed_enabled"]
    asked["HyperParameters"] |= {f"sagemaker_{name}": json.dumps(value) for name, value in told.items()}
    trainer = training_of(asked, tables, None)[0].settings.estimator
    assert isinstance(trainer, ScriptTrainer)
    return trainer


def test_a_process_runs_on_each_gpu_of_each_instance(data: Path, tables: Tables) -> None:
    trainer = launched(data, tables, "ml.p3.8xlarge", 2, torch_distributed_enabled=True, instance_type="ml.p3.8xlarge")
    assert (trainer.launcher, trainer.processes_per_worker) == ("torchrun", 4)
    scaling = trainer.scaling
    assert (scaling.num_workers, scaling.use_gpu, scaling.resources_per_worker) == (2, True, {"CPU": 1, "GPU": 4})


def test_mpirun_has_its_processes_and_options_on_one_node(data: Path, tables: Tables) -> None:
    options = {"mpi_num_of_processes_per_host": 2, "mpi_custom_mpi_options": "-verbose -x A=1"}
    trainer = launched(data, tables, "ml.c5.xlarge", 3, mpi_enabled=True, **options)
    assert (trainer.launcher, trainer.processes_per_worker) == ("mpirun -verbose -x A=1", 2)
    assert (trainer.scaling.num_workers, trainer.scaling.placement_strategy) == (3, "STRICT_PACK")
    with refuses(ServiceError, field="sagemaker_mpi_custom_mpi_options", value="-np 9"):
        launched(data, tables, "ml.c5.xlarge", 1, mpi_enabled=True, mpi_custom_mpi_options="-np 9")


def test_parameter_servers_share_the_cores_of_their_instances(data: Path, tables: Tables) -> None:
    image = PYTORCH.replace("pytorch", "tensorflow")
    trainer = launched(data, tables, "ml.c5.xlarge", 2, image, parameter_server_enabled=True)
    assert (trainer.launcher, trainer.parameter_servers) == ("tensorflow", 2)
    assert (trainer.scaling.num_workers, trainer.scaling.resources_per_worker) == (4, {"CPU": 0.5})
    trainer = launched(data, tables, "ml.c5.xlarge", 2, image, multi_worker_mirrored_strategy_enabled=True)
    assert (trainer.launcher, trainer.parameter_servers, trainer.scaling.num_workers) == ("tensorflow", 0, 2)


def test_a_program_has_the_variables_of_its_request(data: Path, tables: Tables) -> None:
    trainer = launched(data, tables, "ml.c5.xlarge", 1, container_log_level=10)
    assert trainer.environment == {"SM_LOG_LEVEL": "10", "SAGEMAKER_REGION": "us-east-1"}
    asked = script(data)
    asked["Environment"] = {"SAGEMAKER_REGION": "mine", "A": "1"}
    trainer = training_of(asked, tables, None)[0].settings.estimator
    assert isinstance(trainer, ScriptTrainer)
    assert trainer.environment == {"SAGEMAKER_REGION": "mine", "A": "1"}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("AlgorithmSpecification.TrainingInputMode", ("TrainingInputMode", "Pipe", "File")),
        ("InputDataConfig.1.InputMode", ("InputMode", "validation", "Pipe", "FastFile")),
    ],
)
def test_pipes_are_for_rows_alone(data: Path, tables: Tables, path: str, names: tuple[str, ...]) -> None:
    training_of(changed(training(data), path, "Pipe"), tables, None)
    with refuses(ServiceError, field=names):
        training_of(changed(script(data), path, "Pipe"), tables, None)


def test_programs_run_where_the_server_allows_it(data: Path) -> None:
    with refuses(ServiceError, remedy="--allow-code") as refused:
        training_of(script(data), read_tables(None), None)
    assert refused.value.code == "AccessDeniedException"


def test_an_archive_that_leads_out_of_its_folder_is_refused(data: Path, tables: Tables, home: Path) -> None:
    request = script(data)
    with tarfile.open(data / "sourcedir.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("../../outside.py")
        archive.addfile(member, io.BytesIO(b""))
    with refuses(ServiceError, field="sagemaker_submit_directory", value=f"{data}/sourcedir.tar.gz"):
        training_of(request, tables, None)
    (data / "sourcedir.tar.gz").write_bytes(b"nothing")
    with refuses(ServiceError, field="sagemaker_submit_directory", value=f"{data}/sourcedir.tar.gz"):
        training_of(request, tables, None)
    assert list((home / "serve" / "sources").iterdir()) == [], "what was unpacked of them goes"


def changed(request: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(request)
    *parts, last = path.split(".")
    place: Any = made
    for part in parts:
        place = place[int(part)] if part.isdigit() else place[part]
    place[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        ("AlgorithmSpecification", None, ("AlgorithmSpecification", "TrainingImage")),
        ("AlgorithmSpecification.TrainingImage", "me/other:1", ("TrainingImage", "me/other:1", "--aws-tables")),
        ("ResourceConfig.InstanceType", "t9.huge", ("InstanceType", "t9.huge", "--aws-tables")),
        ("ResourceConfig.InstanceType", "ml.trn1.32xlarge", ("InstanceType", "ml.trn1.32xlarge", "--aws-tables")),
        ("ResourceConfig.InstanceGroups", [{}], ("ResourceConfig.InstanceGroups", "InstanceType", "InstanceCount")),
        ("ResourceConfig.VolumeKmsKeyId", "key", ("ResourceConfig.VolumeKmsKeyId", "key")),
        ("OutputDataConfig.KmsKeyId", "key", ("OutputDataConfig.KmsKeyId", "key")),
        ("OutputDataConfig.CompressionType", "NONE", ("OutputDataConfig.CompressionType", "NONE", "GZIP")),
        ("EnableNetworkIsolation", True, ("EnableNetworkIsolation", True)),
        ("EnableInterContainerTrafficEncryption", True, ("EnableInterContainerTrafficEncryption", True)),
        (
            "CheckpointConfig",
            {"S3Uri": "s3://b/c", "LocalPath": "/tmp/c"},
            ("CheckpointConfig.LocalPath", "/tmp/c", "SM_CHECKPOINT_DIR"),
        ),
        (
            "DebugRuleConfigurations",
            [{"RuleConfigurationName": "a"}],
            ("DebugRuleConfigurations", "RuleConfigurationName"),
        ),
        ("TensorBoardOutputConfig", {"S3OutputPath": "s3://b"}, ("TensorBoardOutputConfig", "SM_OUTPUT_DATA_DIR")),
        ("RemoteDebugConfig", {"EnableRemoteDebug": True}, ("RemoteDebugConfig.EnableRemoteDebug", True)),
        (
            "AlgorithmSpecification.ContainerEntrypoint",
            ["train"],
            ("AlgorithmSpecification.ContainerEntrypoint", ["train"], "entry_point"),
        ),
        ("StoppingCondition.MaxPendingTimeInSeconds", 7200, ("StoppingCondition.MaxPendingTimeInSeconds", 7200)),
        ("QuantumConfig", {"Qubits": 3}, ("QuantumConfig.Qubits", 3)),
        ("HyperParameters.sagemaker_mpi_enabled", "true", ("mpirun", IMAGE, "distribution")),
        ("HyperParameters.sagemaker_parameter_server_enabled", "true", ("tensorflow", IMAGE, "distribution")),
        ("HyperParameters.sagemaker_nothing", "1", ("sagemaker_nothing", 1)),
        (
            "InputDataConfig.0.DataSource",
            {"FileSystemDataSource": {"FileSystemId": "fs"}},
            ("InputDataConfig.DataSource.FileSystemDataSource", "S3DataSource"),
        ),
        ("InputDataConfig.0.CompressionType", "Gzip", ("InputDataConfig.CompressionType", "Gzip")),
        (
            "InputDataConfig.0.DataSource.S3DataSource.S3DataType",
            "AugmentedManifestFile",
            ("train", "S3DataType", "AugmentedManifestFile", "S3Prefix", "ManifestFile"),
        ),
        ("InputDataConfig.1.RecordWrapperType", "RecordIO", ("InputDataConfig.RecordWrapperType", "RecordIO", "None")),
        ("HyperParameters.csv_weights", "1", ("csv_weights", "weights")),
    ],
)
def test_what_is_not_here_is_named(data: Path, tables: Tables, path: str, value: Any, names: tuple[str, ...]) -> None:
    with refuses(ServiceError, field=names) as refused:
        training_of(changed(training(data), path, value), tables, None)
    assert refused.value.code == "ValidationException"


@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        ("ParameterRanges.AutoParameters", [{"Name": "eta", "ValueHint": "0.3"}], ("AutoParameters", "Autotune")),
        (
            "ParameterRanges.IntegerParameterRanges.0.Name",
            "sagemaker_mpi_num_of_processes_per_host",
            ("ParameterRanges", "sagemaker_mpi_num_of_processes_per_host", "StaticHyperParameters"),
        ),
        ("ParameterRanges.IntegerParameterRanges.0.MinValue", "few", ("max_depth", "MinValue", "MaxValue")),
        ("HyperParameterTuningJobObjective", None, ("HyperParameterTuningJobObjective", "Type", "MetricName")),
    ],
)
def test_what_no_search_has_is_named(data: Path, tables: Tables, path: str, value: Any, names: tuple[str, ...]) -> None:
    request = tuning(data)
    request["HyperParameterTuningJobConfig"] = changed(request["HyperParameterTuningJobConfig"], path, value)
    with refuses(ServiceError, field=names):
        tuning_of(request, tables, None)


def test_tables_of_ones_own_come_first(tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(
        "images: [{match: 'mine/', trainer: xgboost}, {match: xgboost, trainer: script}]\n"
        "instances: [{match: 'ml.m5.*', cpus: 4}, {match: big, cpus: 2, gpus: 1}]\n"
    )
    found = read_tables(tmp_path / "tables.yaml")
    assert (found.image("mine/x:1"), found.image(IMAGE), found.image(PYTORCH)) == ("xgboost", "script", "script")
    assert found.image("unknown") is None
    assert [found.instance(name).cpus for name in ("ml.m5.large", "ml.c5.large")] == [4, 1]  # type: ignore[union-attr]
    assert found.instance("ml.p3.2xlarge").gpus == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("images: [{match: '(', trainer: xgboost}]", ("images", "match", "'('")),
        ("images: [{match: a, trainer: forest}]", ("images.0.trainer",)),
        ("instances: [{match: a, cpus: 0}]", ("instances.0.cpus",)),
        ("machines: []", ("machines",)),
        (None, ()),
    ],
)
def test_a_wrong_table_is_told(tmp_path: Path, text: str | None, names: tuple[str, ...]) -> None:
    file = tmp_path / "tables.yaml"
    if text is not None:
        file.write_text(text)
    with refuses(ConfigurationError, field=(str(file), *names)):
        read_tables(file)


def test_one_channel_that_the_sdk_calls_training_is_train(data: Path, tables: Tables) -> None:
    alone = {**channel(data, "train"), "ChannelName": "training"}
    _, channels = training_of(changed(training(data), "InputDataConfig", [alone]), tables, None)
    assert channels is not None
    assert list(channels) == ["train"]
