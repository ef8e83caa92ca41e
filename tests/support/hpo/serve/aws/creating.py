"""An object store with rows, a request that trains on them, as the service's own client sends it, and its model."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xgboost

from hpo.record import Store
from tests.support.moto_s3 import moto_s3, s3_client

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
