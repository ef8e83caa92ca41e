"""Operations of the service, called by botocore's own clients over HTTP, on a record filled by hand."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hpo.record import JobRow, LineRow, Store
from hpo.serve import Keys
from hpo.serve.aws import AccessKey
from hpo.serve.aws.creating.jobs import REQUEST
from hpo.serve.aws.errors import ServiceError
from hpo.serve.errors import RefusedError
from hpo.serve.service import ACTORS
from tests.support.listed import job, spec, with_untuned
from tests.support.recorded import record
from tests.support.refusals import mentions
from tests.support.rows import report

Client = Callable[..., Any]
NAME = "HyperParameterTuningJobName"


@contextmanager
def refused(code: str, *names: object) -> Iterator[None]:
    """Expects an error of the service that has this code and names these."""
    with pytest.raises(ClientError) as caught:
        yield
    error = caught.value.response["Error"]
    assert error["Code"] == code, error
    mentions(error["Message"], *names)


def running(store: Store, name: str) -> None:
    """A job that has just been created, and that nobody drives yet."""
    store.create_job(JobRow(name=name, created_at=time.time(), spec=spec()))


def test_a_tuning_job_is_described(client: Client) -> None:
    found = client().describe_hyper_parameter_tuning_job(**{NAME: "bank"})
    assert found["HyperParameterTuningJobArn"] == (
        "arn:aws:sagemaker:eu-central-1:000000000000:hyper-parameter-tuning-job/bank"
    )
    assert found["HyperParameterTuningJobStatus"] == "Completed"
    assert found["TrainingJobStatusCounters"]["Completed"] == 2
    assert found["TrainingJobStatusCounters"]["NonRetryableError"] == 1
    best = found["BestTrainingJob"]
    assert best["TrainingJobName"] == "bank-001"
    assert best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == 0.75
    assert best["TrainingJobArn"].endswith(":training-job/bank-001")
    assert found["CreationTime"].tzinfo is not None
    assert "Summary" not in found
    waited = client().get_waiter("training_job_completed_or_stopped")
    waited.wait(TrainingJobName="bank-001")


def test_an_untuned_run_that_is_better_is_the_best_training_job(store: Store, client: Client) -> None:
    with_untuned(store, "worse", 0.8)
    found = client().describe_hyper_parameter_tuning_job(**{NAME: "worse"})
    best = found["BestTrainingJob"]
    assert best["TrainingJobName"] == "worse-untuned"
    assert best["TrainingJobArn"].endswith(":training-job/worse-untuned")
    assert best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == 0.8
    assert found["TrainingJobStatusCounters"]["Completed"] == 2
    trained = client().describe_training_job(TrainingJobName=best["TrainingJobName"])
    assert trained["TrainingJobName"] == best["TrainingJobName"]
    assert trained["TrainingJobStatus"] == "Completed"
    assert trained["HyperParameters"]["eta"] == "0.3"
    assert trained["ModelArtifacts"]["S3ModelArtifacts"] == "/models/worse-untuned"
    listed = client().list_training_jobs_for_hyper_parameter_tuning_job(**{NAME: "worse"})
    assert [each["TrainingJobName"] for each in listed["TrainingJobSummaries"]] == ["worse-000", "worse-001"]


def test_an_untuned_run_that_is_no_better_is_none(store: Store, client: Client) -> None:
    with_untuned(store, "better", 0.74)
    with_untuned(store, "failed", 0.8, status="Failed")
    for name in ("better", "failed"):
        found = client().describe_hyper_parameter_tuning_job(**{NAME: name})
        assert found["BestTrainingJob"]["TrainingJobName"] == f"{name}-001"


def test_a_trial_is_a_training_job(client: Client) -> None:
    found = client().describe_training_job(TrainingJobName="bank-002")
    assert found["TrainingJobStatus"] == "Failed"
    assert "bad" in found["FailureReason"]
    assert found["TuningJobArn"].endswith("hyper-parameter-tuning-job/bank")
    assert found["HyperParameters"]["max_depth"] == "2"


def test_trainings_of_a_tuning_job_are_ordered_filtered_and_paged(client: Client) -> None:
    def names(**query: Any) -> list[str]:
        pages = client().get_paginator("list_training_jobs_for_hyper_parameter_tuning_job")
        found = pages.paginate(**{NAME: "bank"}, **query, PaginationConfig={"PageSize": 1})
        return [line["TrainingJobName"] for page in found for line in page["TrainingJobSummaries"]]

    assert names() == ["bank-000", "bank-001", "bank-002"]
    assert names(SortOrder="Descending") == ["bank-002", "bank-001", "bank-000"]
    assert names(SortBy="FinalObjectiveMetricValue", SortOrder="Descending") == ["bank-001", "bank-000"]
    assert names(SortBy="Status") == ["bank-000", "bank-001", "bank-002"]
    assert names(StatusEquals="Failed") == ["bank-002"]


def test_tuning_jobs_are_listed(store: Store, client: Client) -> None:
    job(store, "churn", values=[0.9], age=30, status="Failed", reason="no gang")

    def names(**query: Any) -> list[str]:
        pages = client().get_paginator("list_hyper_parameter_tuning_jobs")
        found = pages.paginate(**query, PaginationConfig={"PageSize": 1})
        return [line[NAME] for page in found for line in page["HyperParameterTuningJobSummaries"]]

    assert names() == ["bank", "churn"]
    assert names(SortBy="CreationTime", SortOrder="Descending") == ["churn", "bank"]
    assert names(SortBy="Status") == ["bank", "churn"]
    assert names(NameContains="AN") == ["bank"]
    assert names(StatusEquals="Failed") == ["churn"]
    assert names(CreationTimeAfter=datetime.now(UTC) - timedelta(seconds=60)) == ["churn"]
    assert names(CreationTimeBefore=datetime.now(UTC) - timedelta(seconds=60)) == ["bank"]
    found = client().list_hyper_parameter_tuning_jobs()["HyperParameterTuningJobSummaries"]
    assert [line["TrainingJobStatusCounters"]["Completed"] for line in found] == [2, 1]


def test_training_jobs_are_listed(client: Client) -> None:
    pages = client().get_paginator("list_training_jobs")
    found = pages.paginate(SortBy="Name", SortOrder="Descending", PaginationConfig={"PageSize": 2})
    lines = [line for page in found for line in page["TrainingJobSummaries"]]
    assert [line["TrainingJobName"] for line in lines] == ["bank-002", "bank-001", "bank-000"]
    assert lines[0]["TrainingJobStatus"] == "Failed"


def test_a_token_is_of_its_query_and_key(client: Client, keys: Keys) -> None:
    query = {NAME: "bank", "MaxResults": 1}
    token = client().list_training_jobs_for_hyper_parameter_tuning_job(**query)["NextToken"]
    with refused("ValidationException", "NextToken", "request"):
        client().list_training_jobs_for_hyper_parameter_tuning_job(**query, SortBy="Status", NextToken=token)
    with refused("ValidationException", "NextToken", "request"):
        client().list_training_jobs(MaxResults=1, NextToken=token)
    other = client("sagemaker", keys.add("bob", "look"))
    for wrong in (token, "x", "AAAA"):
        with refused("ValidationException", "NextToken", "access key"):
            other.list_training_jobs_for_hyper_parameter_tuning_job(**query, NextToken=wrong)


def test_what_is_not_there_is_not_found(client: Client) -> None:
    for name in ("nobody", "bank-000"):
        with refused("ResourceNotFound", name):
            client().describe_hyper_parameter_tuning_job(**{NAME: name})
    for name in ("bank", "bank-009", "nobody-000"):
        with refused("ResourceNotFound", name):
            client().describe_training_job(TrainingJobName=name)
    assert issubclass(client().exceptions.ResourceNotFound, ClientError)


def test_a_request_is_checked_by_the_model(client: Client) -> None:
    with refused("ValidationException", "hyperParameterTuningJobName", 32):
        client().describe_hyper_parameter_tuning_job(**{NAME: "x" * 33})
    with refused("ValidationException", "sortBy", "Name", "CreationTime", "Status"):
        client().list_training_jobs(SortBy="Cost")
    with refused("ValidationException", "maxResults", 101, 100):
        client().list_training_jobs(MaxResults=101)
    with refused("ValidationException", "trainingJobName", "null"):
        client(parameter_validation=False).describe_training_job()
    with refused("SerializationException", "maxResults", "many", "integer"):
        client(parameter_validation=False).list_training_jobs(MaxResults="many")
    with refused("UnknownOperationException", "ListModels"):
        client().list_models()


def test_a_job_is_stopped_once(store: Store, client: Client) -> None:
    running(store, "run")
    client().stop_hyper_parameter_tuning_job(**{NAME: "run"})
    found = client().describe_hyper_parameter_tuning_job(**{NAME: "run"})
    assert found["HyperParameterTuningJobStatus"] == "Stopping"
    assert [(act.kind, act.by, act.door) for act in store.acts("run")][1:] == [("stopped", "alice", "SageMaker")]
    client().stop_hyper_parameter_tuning_job(**{NAME: "run"})
    with refused("ValidationException", "status", "Completed"):
        client().stop_hyper_parameter_tuning_job(**{NAME: "bank"})
    with refused("ValidationException", "bank-000"):
        client().stop_training_job(TrainingJobName="bank-000")


def test_a_job_that_is_over_is_deleted(store: Store, client: Client) -> None:
    running(store, "run")
    with refused("ResourceInUse", "run"):
        client().delete_hyper_parameter_tuning_job(**{NAME: "run"})
    with refused("ValidationException", "bank-000", "bank"):
        client().delete_training_job(TrainingJobName="bank-000")
    client().delete_hyper_parameter_tuning_job(**{NAME: "bank"})
    assert [row.name for row in store.jobs()] == ["run"]
    assert store.acts("bank")[-1].kind == "deleted"


def test_tags_are_changed_while_a_job_runs(store: Store, client: Client) -> None:
    running(store, "run")
    arn = client().describe_hyper_parameter_tuning_job(**{NAME: "run"})["HyperParameterTuningJobArn"]
    with store.writer("run") as writer:
        client().add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "a b"}, {"Key": "cost", "Value": "1"}])
        client().add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "churn"}])
        writer.job(summary={"runs": []})
    client().delete_tags(ResourceArn=arn, TagKeys=["cost"])
    assert client().list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "churn"}]
    assert store.acts("run")[-1].kind == "tagged"
    many = [{"Key": f"k{number}", "Value": ""} for number in range(50)]
    with refused("ResourceLimitExceeded", "tags", 51, 50):
        client().add_tags(ResourceArn=arn, Tags=many)
    with refused("ValidationException", "ResourceArn"):
        client().list_tags(ResourceArn="arn:aws:sagemaker:eu-central-1:000000000000:model/x")


def test_a_trial_has_the_tags_of_its_tuning_job(client: Client) -> None:
    arn = client().describe_hyper_parameter_tuning_job(**{NAME: "bank"})["HyperParameterTuningJobArn"]
    trial = client().describe_training_job(TrainingJobName="bank-000")["TrainingJobArn"]
    client().add_tags(ResourceArn=arn, Tags=[{"Key": "team", "Value": "churn"}])
    assert client().list_tags(ResourceArn=trial)["Tags"] == [{"Key": "team", "Value": "churn"}]
    with refused("ValidationException", trial, "bank"):
        client().add_tags(ResourceArn=trial, Tags=[{"Key": "a", "Value": "b"}])


def test_a_key_that_may_look_does_not_act(store: Store, client: Client, keys: Keys) -> None:
    running(store, "run")
    looker = client("sagemaker", keys.add("bob", "look"))
    assert looker.list_training_jobs()["TrainingJobSummaries"]
    with refused("AccessDeniedException", "bob"):
        looker.stop_hyper_parameter_tuning_job(**{NAME: "run"})
    assert store.job("run").status == "InProgress"


def test_the_identity_is_the_keys(client: Client, key: AccessKey) -> None:
    found = client("sts").get_caller_identity()
    assert (found["Account"], found["UserId"]) == ("000000000000", key.id)
    assert found["Arn"].endswith("user/alice")
    stranger = AccessKey(name="x", id=key.id, secret="wrong")
    with refused("SignatureDoesNotMatch"):
        client("sts", stranger).get_caller_identity()
    with refused("InvalidSignatureException", "signature", "AWS Secret Access Key"):
        client("sagemaker", stranger).list_training_jobs()
    with refused("UnrecognizedClientException"):
        client("sagemaker", AccessKey(name="x", id="WBAKX", secret="x")).list_training_jobs()


@pytest.mark.parametrize("protocol", ["smithy-rpc-v2-cbor", "json", "query"])
def test_metrics_are_told_in_each_protocol(
    store: Store, client: Client, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = 1_700_000_040.0  # A full minute.
    with store.writer("bank") as writer:
        for step, value in enumerate([0.5, 0.7, 0.9]):
            writer.report(report(step, value, trial_id="bank-000", at=began + 40 * step))
    cloudwatch = speaking(client("cloudwatch"), protocol, monkeypatch)
    metric = {
        "Namespace": "/aws/sagemaker/TrainingJobs",
        "MetricName": "auc",
        "Dimensions": [{"Name": "TrainingJobName", "Value": "bank-000"}],
    }
    start = datetime.fromtimestamp(began, UTC)
    span = {"StartTime": start, "EndTime": start + timedelta(minutes=5)}
    found = cloudwatch.get_metric_statistics(**metric, **span, Period=60, Statistics=["Average", "SampleCount"])
    points = [(point["Timestamp"], round(point["Average"], 9), point["SampleCount"]) for point in found["Datapoints"]]
    assert points == [(start, 0.6, 2.0), (start + timedelta(minutes=1), 0.9, 1.0)]
    query = {"Id": "a", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Maximum"}}
    (series,) = cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
    assert series["Values"] == [0.9, 0.7]
    nothing = {**metric, "MetricName": "loss"}
    assert not cloudwatch.get_metric_statistics(**nothing, **span, Period=60, Statistics=["Sum"])["Datapoints"]
    with refused("InvalidParameterValue", "StartTime"):
        cloudwatch.get_metric_statistics(**metric, StartTime=start, EndTime=start, Period=60, Statistics=["Average"])


def speaking(made: Any, protocol: str, patch: pytest.MonkeyPatch) -> Any:
    """A client that speaks another of its service's protocols, as older and newer ones do."""
    from botocore.parsers import create_parser
    from botocore.serialize import create_serializer

    made._serializer = create_serializer(protocol, True)
    factory = made._endpoint._response_parser_factory  # All clients of the process have the same.
    patch.setattr(factory, "create_parser", lambda name: create_parser(protocol))
    return made


def test_creation_is_checked_before_anything_else(store: Store, client: Client) -> None:
    with refused("ResourceInUse", "bank"):
        client().create_training_job(
            TrainingJobName="bank",
            RoleArn="arn:aws:iam::000000000000:role/none",
            OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
            StoppingCondition={"MaxRuntimeInSeconds": 60},
        )
    assert len(store.jobs()) == 1


ASKED: dict[str, Any] = {
    "AlgorithmSpecification": {"TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://b/o"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    "RoleArn": "arn:aws:iam::111122223333:role/anybody",
    "StoppingCondition": {},
}


def test_a_creation_that_a_client_asks_for_again_since_it_took_long_is_the_first(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(url: str | None, request: dict[str, Any], tables: Any) -> None:
        asked = spec() | {REQUEST: request}
        store.create_job(JobRow(name=request["TrainingJobName"], created_at=time.time(), spec=asked))
        raise RefusedError(503, "Unavailable", "its driver has not begun")

    monkeypatch.setattr("hpo.serve.aws.operations.training_jobs.create_training_job", create)
    twice = client(retries={"total_max_attempts": 2})
    assert twice.create_training_job(TrainingJobName="once", **ASKED)["TrainingJobArn"].endswith("/once")
    with refused("ResourceInUse"):
        twice.create_training_job(TrainingJobName="once", **ASKED)


def test_of_two_creations_at_once_the_second_s_name_is_in_use(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(url: str | None, request: dict[str, Any], tables: Any) -> None:
        running(store, request["TrainingJobName"])
        raise ServiceError("ValidationException", "there is one of that name")

    monkeypatch.setattr("hpo.serve.aws.operations.training_jobs.create_training_job", create)
    with refused("ResourceInUse"):
        client().create_training_job(TrainingJobName="both", **ASKED)


def test_slow_creations_hold_nobody_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, over = threading.Semaphore(0), threading.Event()

    def create(*_: Any) -> None:
        begun.release()
        assert over.wait(120), "the test has not let creations go on within 120 s"

    monkeypatch.setattr("hpo.serve.aws.operations.training_jobs.create_training_job", create)
    sagemaker = client(read_timeout=120, max_pool_connections=8)
    with ThreadPoolExecutor(ACTORS) as pool:
        made = [
            pool.submit(sagemaker.create_training_job, TrainingJobName=f"slow-{at}", **ASKED) for at in range(ACTORS)
        ]
        try:
            assert all(begun.acquire(timeout=60) for _ in made)
            found = client(read_timeout=20).describe_hyper_parameter_tuning_job(**{NAME: "bank"})
        finally:
            over.set()
        assert found["HyperParameterTuningJobStatus"] == "Completed"
        assert [each.result(60)["TrainingJobArn"].rpartition("/")[2] for each in made] == [
            f"slow-{at}" for at in range(ACTORS)
        ]


def test_a_recorded_search_is_described(store: Store, client: Client, tmp_path: Path) -> None:
    record(store, "searched", 4, steps=3)
    found = client().describe_hyper_parameter_tuning_job(**{NAME: "searched"})
    assert sum(found["ObjectiveStatusCounters"].values()) == 4


def test_lines_of_a_training_are_its_log(store: Store, client: Client) -> None:
    store.create_job(JobRow(name="alone", created_at=1000.0, spec=spec(kind="training")))
    with store.writer("alone") as writer:
        for number in range(3):
            writer.line(LineRow(job="alone", text=f"epoch {number}", at=1000.0 + number))
    logs, group = client("logs"), "/aws/sagemaker/TrainingJobs"
    (stream,) = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix="alone/")["logStreams"]
    query = {"logGroupName": group, "logStreamName": stream["logStreamName"], "startFromHead": True}
    page = logs.get_log_events(**query, limit=2)
    assert [event["message"] for event in page["events"]] == ["epoch 0", "epoch 1"]
    page = logs.get_log_events(**query, nextToken=page["nextForwardToken"])
    assert [(event["timestamp"], event["message"]) for event in page["events"]] == [(1_002_000, "epoch 2")]
    assert not logs.get_log_events(**query, nextToken=page["nextForwardToken"])["events"]
    assert not logs.describe_log_streams(logGroupName=group, logStreamNamePrefix="bank-000/")["logStreams"]
    with refused("ResourceNotFoundException", "group"):
        logs.describe_log_streams(logGroupName="mine")


def test_a_description_says_what_was_asked_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = {
        "StaticHyperParameters": {"eval_metric": "auc"},
        "AlgorithmSpecification": {"TrainingImage": "xgboost:1.7-1", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::000000000000:role/tuner",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
        "HyperParameterTuningResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 2},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    }
    limits = {"MaxNumberOfTrainingJobs": 5, "MaxParallelTrainingJobs": 1, "MaxRuntimeInSeconds": 3600}
    asked = {
        "HyperParameterTuningJobConfig": {"Strategy": "Hyperband", "ResourceLimits": limits},
        "TrainingJobDefinition": definition,
    }
    for module in ("tuning_jobs", "training_jobs"):
        monkeypatch.setattr(f"hpo.serve.aws.operations.{module}.request_of", lambda job: asked)
    found = client().describe_hyper_parameter_tuning_job(**{NAME: "bank"})
    told = found["TrainingJobDefinition"]
    assert told["StaticHyperParameters"].pop("_tuning_objective_metric") == "validation:auc"
    assert told["AlgorithmSpecification"].pop("MetricDefinitions")[0]["Name"] == "validation:auc"
    assert told.pop("ResourceConfig")["InstanceCount"] == 2
    assert told == definition, "beside what the service adds, and the SDK counts on"
    limits_now = found["HyperParameterTuningJobConfig"]["ResourceLimits"]
    assert limits_now["MaxRuntimeInSeconds"] == 3600
    assert limits_now["MaxNumberOfTrainingJobs"] != 5, "limits that were raised since are the job's"
    trial = client().describe_training_job(TrainingJobName="bank-000")
    assert trial["AlgorithmSpecification"]["TrainingImage"] == "xgboost:1.7-1"
    assert (trial["ResourceConfig"]["InstanceType"], trial["ResourceConfig"]["InstanceCount"]) == ("ml.m5.large", 2)
    assert trial["StoppingCondition"]["MaxRuntimeInSeconds"] == 600
    assert trial["OutputDataConfig"]["KmsKeyId"] == "", "the SDK's attach reads it"
    assert trial["HyperParameters"] == {
        "eval_metric": "auc",
        "eta": "0.123456",
        "max_depth": "0",
        "booster": "[b]dart[/]",
        "_tuning_objective_metric": "validation:auc",
    }
    definition["StaticHyperParameters"] = {"sagemaker_program": '"train.py"', "epochs": "3"}
    program = client().describe_training_job(TrainingJobName="bank-000")["HyperParameters"]
    assert program.pop("_tuning_objective_metric") == "validation:auc"
    values = {"sagemaker_program": "train.py", "epochs": 3, "eta": 0.123456, "max_depth": 0, "booster": "[b]dart[/]"}
    assert {name: json.loads(text) for name, text in program.items()} == values, "as the SDK's programs read them"


def measured(client: Client, name: str) -> dict[str, list[float]]:
    """The metrics of a training by the calls of the SDK's `TrainingJobAnalytics(name).dataframe()`."""
    found = client().describe_training_job(TrainingJobName=name)
    names = [each["Name"] for each in found["AlgorithmSpecification"]["MetricDefinitions"]]
    span = {"StartTime": found["TrainingStartTime"], "EndTime": found["TrainingEndTime"] + timedelta(minutes=1)}
    values = {}
    for metric in names:
        points = client("cloudwatch").get_metric_statistics(
            Namespace="/aws/sagemaker/TrainingJobs",
            MetricName=metric,
            Dimensions=[{"Name": "TrainingJobName", "Value": name}],
            Period=60,
            Statistics=["Average"],
            **span,
        )["Datapoints"]
        values[metric] = [point["Average"] for point in points]
    return values


@pytest.mark.parametrize("created", ["by a request", "elsewhere"])
def test_the_analytics_of_a_training_find_its_metrics(
    store: Store, client: Client, created: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if created == "by a request":
        algorithm = {"TrainingImage": "xgboost:latest", "TrainingInputMode": "File"}
        asked = {
            "TrainingJobDefinition": {
                "AlgorithmSpecification": algorithm,
                "OutputDataConfig": {"S3OutputPath": "s3://b"},
            }
        }
        monkeypatch.setattr("hpo.serve.aws.operations.training_jobs.request_of", lambda job: asked)
    at = next(trial.started_at for trial in store.trials("bank") if trial.trial_id == "bank-000")
    assert at is not None
    with store.writer("bank") as writer:
        row = report(1, 0.7, trial_id="bank-000", at=at + 1)
        writer.report(replace(row, metrics={"validation:auc": 0.7, "test:logloss": 0.3, "broken": math.nan}))
    assert measured(client, "bank-000") == {"validation:auc": [0.7], "test:logloss": [0.3], "broken": []}
    assert measured(client, "bank-001") == {"validation:auc": []}, "it has reported nothing, and has its objective"


def test_the_metrics_of_a_program_are_those_that_it_prints(store: Store, client: Client) -> None:
    printed = [{"Name": "loss", "Regex": "loss=(.*)"}]
    estimator = {**spec()["estimator"], "trainer": "trainers.script.trainer:ScriptTrainer"}
    estimator["options"] = {"metric_definitions": printed}
    changed = {"estimator": estimator, "objective_metric_name": "loss"}
    job(store, "program", values=[0.5], spec=changed)
    found = client().describe_training_job(TrainingJobName="program-000")["AlgorithmSpecification"]
    assert found["MetricDefinitions"] == printed
