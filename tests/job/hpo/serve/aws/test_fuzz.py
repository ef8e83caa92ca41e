"""Requests to create jobs, made of the service's own shapes and spoilt: an error that says why, or a whole job."""

from __future__ import annotations

import copy
import gc
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings as examples, strategies as st
from starlette.testclient import TestClient

from hpo.record import Store
from hpo.serve import Keys, ServeSettings, make_app
from hpo.serve.aws.creating import jobs as creating
from hpo.serve.aws.wire.models import model, pattern
from hpo.serve.security import guard
from tests.support import properties
from tests.support.hpo.serve.aws.signed import Door, in_this_process
from tests.support.moto_s3 import moto_s3, s3_client
from tests.support.rows import sqlite_url

OPERATIONS = {"CreateTrainingJob": "TrainingJobName", "CreateHyperParameterTuningJob": "HyperParameterTuningJobName"}
SECONDS = 60.0
"""That an answer may take on a busy machine."""

TEXTS = st.text(max_size=20) | st.sampled_from(
    ["", "\0", "a\nb", "a\x1b[31m", "..", "../../x", "%s", "bänk", "\ud800", "x" * 70_000, "NaN", "1e999", "-0"]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, 2**63, -1, 0])
DEEP: Any = json.loads('{"a":[' * 40 + "1" + "]}" * 40)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.just(DEEP),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CASES = examples(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=properties.examples(40),
    deadline=None,
)


@pytest.fixture(scope="module")
def files() -> Iterator[str]:
    """The address of an S3 with rows."""
    with moto_s3() as address:
        client = s3_client(address)
        client.create_bucket(Bucket="bucket")
        rows = pd.DataFrame({"y": [0, 1] * 20, "a": range(40)}).to_csv(index=False, header=False)
        for name in ("train", "validation"):
            client.put_object(Bucket="bucket", Key=f"{name}/rows.csv", Body=rows.encode())
        yield address


@pytest.fixture
def door(tmp_path: Path, files: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """A server that creates jobs in this process, and starts none of them."""
    for name, value in {"ENDPOINT_URL_S3": files, "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("WARMBAND_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(guard, "ACTS_A_SECOND", 1e9)
    monkeypatch.setattr("hpo.serve.aws.door.CALLS_A_SECOND", 1e9)
    monkeypatch.setattr(creating, "ask", in_this_process)
    monkeypatch.setattr("hpo.jobs.launch.start", lambda *_, **__: "nowhere")
    keys, store = Keys(tmp_path / "keys.json"), sqlite_url(tmp_path)
    settings = ServeSettings(store=store, folder=tmp_path / "serve", aws_keys=keys.file, rate=1e9)
    keys.add("first", "look")
    with TestClient(make_app(settings), base_url="http://localhost") as client:
        yield Door(client, keys, store)


def request(operation: str) -> dict[str, Any]:
    """A request that goes."""
    channels = [
        {
            "ChannelName": name,
            "ContentType": "text/csv",
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://bucket/{name}"}},
        }
        for name in ("train", "validation")
    ]
    definition = {
        "AlgorithmSpecification": {"TrainingImage": "me/sagemaker-xgboost:1.7-1", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::111122223333:role/anybody",
        "InputDataConfig": channels,
        "OutputDataConfig": {"S3OutputPath": f"s3://bucket/models-of-{operation}"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
    }
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": "3"}
    if operation == "CreateTrainingJob":
        return {"TrainingJobName": "made", "HyperParameters": static, **definition}
    return {
        "HyperParameterTuningJobName": "made",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "eta", "MinValue": "0.1", "MaxValue": "1"}]},
        },
        "TrainingJobDefinition": {"StaticHyperParameters": static, **definition},
    }


def of_shape(shape: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a shape of the model, with members that may be there and few that are too long."""
    kind, limits = shape.type_name, shape.metadata
    if words := limits.get("enum"):
        return st.sampled_from(words)
    if kind == "structure":
        members = {name: of_shape(each, depth + 1) for name, each in shape.members.items()}
        needed = {name: members[name] for name in shape.required_members}
        return st.fixed_dictionaries(
            needed, optional={} if depth > 3 else {name: each for name, each in members.items() if name not in needed}
        )
    if kind == "list":
        return st.lists(of_shape(shape.member, depth + 1), min_size=limits.get("min", 0), max_size=2)
    if kind == "map":
        return st.dictionaries(of_shape(shape.key, depth), of_shape(shape.value, depth), max_size=2)
    if kind in ("integer", "long"):
        return st.integers(limits.get("min", 0), min(limits.get("max", 100), 2**31))
    simple = {"boolean": st.booleans(), "float": st.floats(), "double": st.floats(), "timestamp": st.integers(0, 2**31)}
    texts = st.sampled_from(["a", "1", "0.5", "s3://bucket/train", "arn:aws:iam::111122223333:role/a"])
    return simple.get(kind, texts)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a request, and a key or place in it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def check(door: Door, operation: str, body: bytes, before: list[str]) -> None:
    """Whatever was asked for: a job that is there, or an error and nothing."""
    began = time.monotonic()
    answer = door.call(operation, body)
    assert time.monotonic() - began < SECONDS
    after = door.names()
    if answer.status_code == 200:
        assert len(after) == len(before) + 1
        with Store(door.store) as record:
            record.delete_job(after[0])
        return
    told = answer.json()
    assert answer.status_code in (400, 403, 404), told
    assert told["__type"].endswith(("Exception", "InUse", "NotFound", "Exceeded")), told
    assert told.get("message") or told.get("Message")
    assert "Traceback" not in str(told)
    assert after == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_that_goes_makes_a_whole_job(door: Door, operation: str) -> None:
    assert door.call(operation, json.dumps(request(operation)).encode()).status_code == 200
    assert door.names() == ["made"]


@CASES
@given(data=st.data(), operation=st.sampled_from(sorted(OPERATIONS)))
def test_a_spoilt_request_is_refused_or_makes_a_whole_job(door: Door, data: st.DataObject, operation: str) -> None:
    asked = copy.deepcopy(request(operation))
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = data.draw(st.sampled_from(list(places(asked))))
        assume(key in holder if isinstance(holder, dict) else key < len(holder))
        act = data.draw(st.sampled_from(["value", "value", "missing", "more"]))
        if act == "missing":
            del holder[key]
        elif act == "more" and isinstance(holder, dict):
            holder[data.draw(TEXTS)] = copy.deepcopy(data.draw(ANYTHING))
        else:
            holder[key] = copy.deepcopy(data.draw(ANYTHING))
    check(door, operation, json.dumps(asked).encode(), door.names())


@CASES
@given(data=st.data(), operation=st.sampled_from(sorted(OPERATIONS)))
def test_any_members_of_the_model_are_refused_or_make_a_whole_job(
    door: Door, data: st.DataObject, operation: str
) -> None:
    shape = model("sagemaker").operation_model(operation).input_shape
    asked = request(operation)
    name = data.draw(st.sampled_from(sorted(shape.members)))
    asked[name] = data.draw(of_shape(shape.members[name]))
    check(door, operation, json.dumps(asked).encode(), door.names())


NO_REQUESTS = [b"", b"[]", b"null", b"\xff\xfe", b'{"a":' * 5000, b"[" * 100_000, b'{"Tags": 1' + b"0" * 5000 + b"}"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("body", NO_REQUESTS)
def test_a_body_that_is_no_request_is_refused(door: Door, operation: str, body: bytes) -> None:
    # The parser descends as deep as Python lets it: a garbage collection there would fail in other objects' finalizers.
    gc.disable()
    try:
        check(door, operation, body, [])
    finally:
        gc.enable()


@pytest.mark.parametrize("service", ["sagemaker", "cloudwatch", "logs"])
def test_every_pattern_of_the_models_can_be_looked_for(service: str) -> None:
    shapes = model(service)
    texts = [shapes.shape_for(name).metadata.get("pattern") for name in shapes.shape_names]
    assert all(pattern(text) for text in texts if text)
