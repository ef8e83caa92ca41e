"""Jobs that the service's own client creates: whole in the record or not there, and started again where left behind."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xgboost
from botocore.exceptions import ClientError
from ray.train import ScalingConfig

from hpo import jobs
from hpo.record import Store
from hpo.serve.aws.creating import jobs as creating, read_tables, request_of, start_left_behind
from hpo.serve.aws.creating.asked import training_of
from hpo.serve.aws.creating.jobs import REQUEST
from tests.support.moto_s3 import moto_s3, s3_client
from tests.support.refusals import refuses
from tests.support.rows import sqlite_url
from trainers import XGBoostTrainer

Client = Callable[..., Any]
ROWS = pd.DataFrame({"y": [0, 1] * 40, "a": range(80)})


@pytest.fixture(scope="module")
def store_of_files() -> Iterator[str]:
    """The address of an S3-compatible server with rows in a bucket."""
    with moto_s3() as address:
        files = s3_client(address)
        files.create_bucket(Bucket="bucket")
        rows = ROWS.to_csv(index=False, header=False)
        for name in ("train", "validation"):
            files.put_object(Bucket="bucket", Key=f"{name}/rows.csv", Body=rows.encode())
        yield address


@pytest.fixture(autouse=True)
def reached(store_of_files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store_of_files)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


def request(folder: Path, **changed: Any) -> dict[str, Any]:
    channels = []
    for name in ("train", "validation"):
        source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://bucket/{name}"}
        channels.append({"ChannelName": name, "ContentType": "text/csv", "DataSource": {"S3DataSource": source}})
    return {
        "TrainingJobName": "made",
        "AlgorithmSpecification": {"TrainingImage": "me/sagemaker-xgboost:1.7-1", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/anybody",
        "InputDataConfig": channels,
        "OutputDataConfig": {"S3OutputPath": f"s3://bucket/{folder.name}"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "HyperParameters": {"objective": "binary:logistic", "eval_metric": "auc", "num_round": "3"},
        **changed,
    }


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


def ended(store: Store, name: str, seconds: float = 300.0) -> str:
    until = time.monotonic() + seconds
    while (status := store.job(name).status) in ("InProgress", "Stopping"):
        assert time.monotonic() < until, f"{name} is {status} after {seconds:g} s"
        time.sleep(0.2)
    return status


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


def test_a_job_that_was_written_and_not_started_is_started(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, url = request(tmp_path), sqlite_url(tmp_path)
    training, inputs = training_of(asked, read_tables(None), url)
    job = jobs.NewJob.of(training.settings.changed(), inputs, "made", url, 63, apart=True)
    replace(job, row=replace(job.row, spec={**job.row.spec, REQUEST: asked})).write()
    start_left_behind(store, url)
    assert store.job("made").lease == "", "it may be under way to its driver"
    monkeypatch.setattr(creating, "LEFT_SECONDS", -1.0)
    start_left_behind(store, url)
    assert ended(store, "made") == "Completed"
    start_left_behind(store, url)  # There is nothing left to do.
