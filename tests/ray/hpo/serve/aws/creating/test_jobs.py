"""Jobs that the service's own client creates: whole in the record or not there."""

from __future__ import annotations

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
from tests.support.hpo.serve.aws.creating import (
    ROWS,
    archived_model,
    ended,
    reached,  # noqa: F401  # Fixtures.
    request,
    store_of_files,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import refuses
from trainers import XGBoostTrainer

Client = Callable[..., Any]


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
