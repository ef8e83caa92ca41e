"""Jobs that the service's own client creates: whole in the record or not there."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import xgboost
from botocore.exceptions import ClientError
from ray.train import ScalingConfig

from hpo.record import Store
from hpo.serve.aws.creating import request_of
from tests.support.hpo.serve.aws.creating import ROWS, ended, reached, request, store_of_files  # noqa: F401  # Fixtures.
from tests.support.moto_s3 import s3_client
from tests.support.refusals import refuses
from trainers import XGBoostTrainer

Client = Callable[..., Any]


def tuning_request(folder: Path, **changed: Any) -> dict[str, Any]:
    training = request(folder)
    name, hyperparameters = training.pop("TrainingJobName"), training.pop("HyperParameters")
    assert name
    rate = {"Name": "eta", "MinValue": "0.01", "MaxValue": "0.5"}
    return {
        "HyperParameterTuningJobName": "tuned",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 7, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {"ContinuousParameterRanges": [rate]},
        },
        "TrainingJobDefinition": {**training, "StaticHyperParameters": hyperparameters, **changed},
    }


def archived_model(address: str, described: dict[str, Any], folder: Path) -> xgboost.Booster:
    """The model of a training in the archive that its description names."""
    _, _, bucket, key = described["ModelArtifacts"]["S3ModelArtifacts"].split("/", 3)
    packed = s3_client(address).get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        assert archive.getnames() == ["xgboost-model"]
        archive.extractall(folder, filter="data")
    model = xgboost.Booster()
    model.load_model(folder / "xgboost-model")
    return model


def test_a_client_creates_a_training_that_runs_apart(
    client: Client, store: Store, tmp_path: Path, store_of_files: str
) -> None:
    sagemaker, asked = client(), request(tmp_path)
    made = sagemaker.create_training_job(**asked)
    assert made["TrainingJobArn"].endswith("training-job/made")
    assert ended(store, "made") == "Completed"
    row = store.job("made")
    assert request_of(row) == asked
    assert [(act.kind, act.by, act.door) for act in store.acts("made")] == [("created", "alice", "SageMaker")]
    described = sagemaker.describe_training_job(TrainingJobName="made")
    assert described["TrainingJobStatus"] == "Completed"
    assert described["HyperParameters"] == asked["HyperParameters"]
    assert [each["Name"] for each in described["AlgorithmSpecification"]["MetricDefinitions"]] == ["validation:auc"]
    found = client("cloudwatch").get_metric_statistics(
        Namespace="/aws/sagemaker/TrainingJobs",
        MetricName="validation:auc",
        Dimensions=[{"Name": "TrainingJobName", "Value": "made"}],
        StartTime=described["TrainingStartTime"],
        EndTime=described["TrainingEndTime"] + timedelta(minutes=1),
        Period=60,
        Statistics=["SampleCount"],
    )
    assert sum(point["SampleCount"] for point in found["Datapoints"]) == 3, "one a round, as the SDK's analytics ask"
    assert described["ResourceConfig"] == asked["ResourceConfig"]
    assert described["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://bucket/{tmp_path.name}/made/output/model.tar.gz"
    archived = archived_model(store_of_files, described, tmp_path)
    own = XGBoostTrainer(scaling=ScalingConfig(num_workers=1)).load_model(store.trials("made")[0].checkpoint)
    rows = xgboost.DMatrix(ROWS[["a"]].to_numpy())
    assert archived.predict(rows).tolist() == own.predict(rows).tolist()
    with pytest.raises(ClientError) as refused:
        sagemaker.create_training_job(**asked)
    assert refused.value.response["Error"]["Code"] == "ResourceInUse"


def test_each_training_of_a_tuning_job_leaves_its_model(
    client: Client, store: Store, tmp_path: Path, store_of_files: str
) -> None:
    sagemaker = client()
    sagemaker.create_hyper_parameter_tuning_job(**tuning_request(tmp_path))
    assert ended(store, "tuned") == "Completed"
    trials = [trial for trial in store.trials("tuned") if trial.number >= 0]
    assert len(trials) == 7
    assert sum(not trial.checkpoint for trial in trials) == 2, "a job keeps the checkpoints of its best five"
    for trial in trials:
        described = sagemaker.describe_training_job(TrainingJobName=trial.trial_id)
        model = archived_model(store_of_files, described, tmp_path)
        assert model.num_boosted_rounds() == trial.resource


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"HyperParameters": {"objective": "binary:logistic", "num_rund": "3"}}, ("num_rund",)),
        (
            {"AlgorithmSpecification": {"TrainingImage": "other", "TrainingInputMode": "File"}},
            ("TrainingImage", "other", "--aws-tables"),
        ),
    ],
)
def test_a_request_that_does_not_go_leaves_no_job(
    client: Client, store: Store, tmp_path: Path, changed: dict[str, Any], names: tuple[str, ...]
) -> None:
    before = [job.name for job in store.jobs()]
    with refuses(ClientError, field=names) as refused:
        client().create_training_job(**request(tmp_path, **changed))
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert [job.name for job in store.jobs()] == before
